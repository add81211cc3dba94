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


NAMES = list(STRANGE.values())


@pytest.fixture(scope="module")
def every():
    """A sweep whose learners, and whose instance, have all these names."""
    made = synthetic_sweep(instances=(NAMES[0],), num_points=6)
    return made.isel(learner=[j % 3 for j in range(len(NAMES))]).assign_coords(learner=NAMES)


def shown(name):
    return name.replace("$", r"\$")


def test_figures_show_the_names(every):
    drawn = [
        jb.plot_regret(every, size=(9, 9)),
        jb.plot_regret(every, labels="legend"),
        jb.plot_panels(every),
        jb.plot_final(every),
        jb.plot_comparison(jb.stats.compare(every)),
        jb.plot_profiles(jb.stats.performance_profiles(every, num_resamples=50)),
    ]
    for each in drawn:
        each.figure.draw_without_rendering()  # mathematics that cannot be read would be an error
        written = "".join(texts(each.figure).split())  # long names are broken into lines
        assert [name for name in NAMES if "".join(shown(name).split()) not in written] == []
    for each in (drawn[1], drawn[5]):
        legend = ["".join(t.get_text().split()) for t in each.figure.findobj(Legend)[0].get_texts()]
        assert legend == ["".join(shown(name).split()) for name in NAMES]


@pytest.mark.parametrize("which", ["html", "broken mathematics", "underscore", "a link"])
def test_titles_and_pages_show_the_name(every, which, tmp_path):
    """Of an instance, a learner and a metric; and in a page."""
    name = STRANGE[which]
    ds = every.isel(learner=[NAMES.index(name)]).assign_coords(instance=[name])
    ds = ds.assign_coords(family=("instance", [name])).assign({name: ds["regret"]})
    for each in (jb.plot_policy(ds, learner=name), jb.plot_metric(ds, name)):
        each.figure.draw_without_rendering()
        assert shown(name) in texts(each.figure)
    ds = ds.drop_vars(name).assign_attrs(config="{}", versions="{}")
    assert name in jb.stats.format_table(jb.stats.final_table(ds))
    page = make_report(jb.save(ds, tmp_path / "run.nc")).read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r"<img(?! alt=)", page)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.html", "run.nc"]


def test_labels_of_instances_are_shown(tmp_path):
    """Each name as the name of an action and of an offer; one also as unit and as level. Pages escape HTML."""
    count, unit = len(NAMES), STRANGE["broken mathematics"]
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=count)
    offers = [*NAMES, *NAMES][: mdp.num_outcomes]
    mdp = jb.label(mdp, unit=unit, level=unit, actions=NAMES, offers=offers)
    policy = np.zeros((2, 2), np.int32)
    size = (9, 4)
    policy_map = jb.plot_policy(policy, mdp, size=size)
    for drawn in (policy_map, jb.plot_instance(mdp, size=size)):
        drawn.figure.draw_without_rendering()
        assert shown(unit) in texts(drawn.figure)
        (file,) = drawn.save(tmp_path / "x.svg")
        assert "<script" not in file.read_text(encoding="utf-8")
    written = texts(policy_map.figure)
    assert [name for name in NAMES if shown(name) not in written] == []
    episode = jb.trace(mdp, policy, jax.random.key(0))
    assert NAMES[0] in str(episode)
    jb.plot_episode(mdp, episode).figure.draw_without_rendering()
    ds = jb.sweep({"U": jb.make_learner("uniform")}, {"I": mdp}, 10, 2, progress=False)
    jb.plot_regret(jb.in_units(ds)).figure.draw_without_rendering()


def test_cells_of_markdown_tables_stay_in_their_columns_and_are_no_html():
    link = STRANGE["a link"]
    table = markdown_table(["a | b", "c"], [["<x>", "1 | 2"], [link, "<b>y</b>"]])
    assert not re.search(r"(?<!\\)[<\[]", table)
    page = text_to_html(table)
    assert page.count("<td") == 4
    cells = ("a | b", "c", "&lt;x&gt;", "1 | 2", link, "&lt;b&gt;y&lt;/b&gt;")
    assert all(f">{cell}</t" in page for cell in cells)


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
    "name", ["\u0645\u06cc\u200c\u062e", "\u05e9\u05dc\u05d5\u05dd", "\U0001f468\u200d\U0001f469"]
)
def test_other_scripts_are_welcome(name):
    checks.names("learners", {name: 1})


@pytest.mark.parametrize("title", [r"$\frac$", "$$", "$x^{$"])
def test_a_title_whose_mathematics_cannot_be_read_is_refused_by_name(title):
    """Titles are the user's own, and may have formulas."""
    ds = synthetic_sweep(num_points=4)
    for draw in (jb.plot_regret, jb.plot_panels, jb.plot_final):
        with pytest.raises(ValueError, match=r"title: .* has mathematics that cannot be read; acc"):
            draw(ds, title=title)
    jb.plot_final(ds, title=r"$H_1 = 15$ costs \$5").figure.draw_without_rendering()


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")
@pytest.mark.parametrize("name", ["x" * 200, "$" * 200], ids=["letters", "dollars"])
def test_the_longest_names_are_drawn(name):
    """Also where two of them stand in one title, and where dollar signs are escaped."""
    ds = synthetic_sweep(instances=(name,)).assign_coords(learner=[name, "OrderedExpRef", "UCB-VI"])
    drawn = (jb.plot_regret(ds), jb.plot_active_sets(ds, name), jb.plot_policy(ds, learner=name))
    for each in drawn:
        each.figure.draw_without_rendering()
