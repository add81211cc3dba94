"""Names that a user may give are shown as they are, everywhere, and do nothing."""

import re

import jax
import numpy as np
import pytest
from matplotlib.legend import Legend
from synthetic_sweep import synthetic_sweep, texts

import jaxbandit as jb
from jaxbandit import checks
from jaxbandit.cli.report import make_report, text_to_html
from jaxbandit.experiment import markdown_table

STRANGE = {
    "html": "<script>alert(1)</script> & <img src=x>",
    "mathematics": r"cost $5 to $6, $\frac$",
    "broken mathematics": r"$\frac{1}$ $x^{$",
    "a command": r"\input{/etc/passwd}",
    "underscore": "_mine",
    "formula": "=1+2|cmd",
    "table": "a | b \\",
    "path": "../../etc/passwd",
    "unicode": "α̂ · β²",
    "format": "{0} %s {x}",
    "a link": "[x](javascript:alert(1))",
}


def named(name):
    return synthetic_sweep(instances=(name,)).assign_coords(
        learner=[name, "OrderedExpRef", "UCB-VI"], family=("instance", [name])
    )


@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE)
def test_figures_show_the_name(name, tmp_path):
    ds = named(name)
    drawn = [
        jb.plot_regret(ds),
        jb.plot_regret(ds, labels="legend"),
        jb.plot_panels(ds),
        jb.plot_active_sets(ds, name),
        jb.plot_policy(ds, learner=name),
        jb.plot_final(ds),
        jb.plot_comparison(jb.stats.compare(ds)),
        jb.plot_profiles(jb.stats.performance_profiles(ds)),
        jb.plot_metric(ds.assign({name: ds["regret"]}), name),
    ]
    for each in drawn:
        each.figure.draw_without_rendering()  # mathematics that cannot be read would be an error
        assert name.replace("$", r"\$") in texts(each.figure)


@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE)
def test_labels_of_instances_are_shown(name, tmp_path):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    mdp = jb.label(mdp, unit=name, level=name, actions=[name] * 2, offers=[name] * mdp.num_outcomes)
    policy = np.zeros((2, 2), np.int32)
    for drawn in (jb.plot_policy(policy, mdp), jb.plot_instance(mdp)):
        drawn.figure.draw_without_rendering()
        assert name.replace("$", r"\$") in texts(drawn.figure)
        (file,) = drawn.save(tmp_path / "x.svg")
        assert "<script" not in file.read_text(encoding="utf-8")
    episode = jb.trace(mdp, policy, jax.random.key(0))
    assert name in str(episode)
    jb.plot_episode(mdp, episode).figure.draw_without_rendering()
    ds = jb.sweep({"U": jb.make_learner("uniform")}, {"I": mdp}, 10, 2, progress=False)
    jb.plot_regret(jb.in_units(ds)).figure.draw_without_rendering()


@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE)
def test_legends_leave_no_name_out(name):
    ds = named(name)
    for drawn in (
        jb.plot_regret(ds, labels="legend"),
        jb.plot_profiles(jb.stats.performance_profiles(ds)),
    ):
        legends = drawn.figure.findobj(Legend)
        assert name.replace("$", r"\$") in [t.get_text().strip() for t in legends[0].get_texts()]


@pytest.mark.parametrize("name", STRANGE.values(), ids=STRANGE)
def test_tables_and_pages_show_the_name(name, tmp_path):
    ds = named(name).assign_attrs(config="{}", versions="{}")
    assert name in jb.stats.format_table(jb.stats.final_table(ds))
    page = make_report(jb.save(ds, tmp_path / "run.nc")).read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r"<img(?! alt=)", page)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.html", "run.nc"]


def test_cells_of_markdown_tables_stay_in_their_columns():
    table = markdown_table(["a | b", "c"], [["<x>", "1 | 2"]])
    assert text_to_html(table).count("<td>") == 2
    assert "<th>a | b</th><th>c</th>" in text_to_html(table)
    assert "<td>&lt;x&gt;</td><td>1 | 2</td>" in text_to_html(table)


@pytest.mark.parametrize(
    "name",
    [
        "a\0b", "\x1b]0;x\x07", "\x9b31m", "two\nlines", "a\rb", "\udcff", "a\u202eb", "a\u2067b", "a\u200fb",
        "a\u200bb", "\ufeffa", "so\u00adft", "a\U000e0041b", "a\u2028b",
    ],
)  # fmt: skip
def test_names_that_nobody_can_mean_never_enter_a_sweep(name):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    learner = jb.make_learner("uniform")
    for learners, instances, argument in (
        ({name: learner}, {"I": mdp}, "learners"),
        ({"U": learner}, {name: mdp}, "instances"),
        ({"U": learner}, {name: [mdp]}, "instances"),
    ):
        with pytest.raises(ValueError, match=f"{argument}: name .* has the character"):
            jb.sweep(learners, instances, 10, 1, progress=False)
    with pytest.raises(ValueError, match=r"name: name .* has the character"):
        jb.register_instance(name, dict)


@pytest.mark.parametrize("name", ["", " ", "\u00a0", "\u3164", "\u200d", "x" * 201])
def test_names_that_nobody_can_see_or_read_are_refused(name):
    with pytest.raises(ValueError, match=r"learners: name .*accepted: ") as error:
        checks.names("learners", {name: 1})
    assert str(error.value).isascii()
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "name",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u05e9\u05dc\u05d5\u05dd",
        "\U0001f468\u200d\U0001f469",
    ],
)
def test_other_scripts_are_welcome(name):
    checks.names("learners", {name: 1})


@pytest.mark.parametrize("title", [r"$\frac$", "$$", "$x^{$"])
def test_a_title_whose_mathematics_cannot_be_read_is_refused_by_name(title):
    """Titles are the user's own, and may have formulas."""
    ds = synthetic_sweep()
    for draw in (jb.plot_regret, jb.plot_panels, jb.plot_final):
        with pytest.raises(
            ValueError, match=r"title: .* has mathematics that cannot be read; accepte"
        ):
            draw(ds, title=title)
        draw(ds, title=r"$H_1 = 15$ costs \$5").figure.draw_without_rendering()


def test_names_are_no_links_and_no_html_in_markdown():
    table = markdown_table(["a"], [["[x](javascript:alert(1))"], ["<b>y</b>"]])
    assert not re.search(r"(?<!\\)[<\[]", table)
    assert "<td>[x](javascript:alert(1))</td>" in text_to_html(table)
    assert "<td>&lt;b&gt;y&lt;/b&gt;</td>" in text_to_html(table)


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
@pytest.mark.parametrize("name", ["x" * 200, "$" * 200], ids=["letters", "dollars"])
def test_the_longest_names_are_drawn(name):
    """Also where two of them stand in one title, and where dollar signs are escaped."""
    ds = named(name)
    for each in (
        jb.plot_regret(ds),
        jb.plot_active_sets(ds, name),
        jb.plot_policy(ds, learner=name),
    ):
        each.figure.draw_without_rendering()
