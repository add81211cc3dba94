"""Names that a user may give are shown as they are, everywhere, and do nothing."""

import re

import pytest
from synthetic_sweep import synthetic_sweep, texts

import jaxbandit as jb
from jaxbandit.experiment.report import make_report, markdown_table, text_to_html

STRANGE = {
    "html": "<script>alert(1)</script> & <img src=x>",
    "mathematics": r"cost $5 to $6, $\frac$",
    "table": "a | b \\",
    "path": "../../etc/passwd",
    "unicode": "α̂ · β²",
    "format": "{0} %s {x}",
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
    ]
    for each in drawn:
        each.figure.draw_without_rendering()  # mathematics that cannot be read would be an error
        assert name.replace("$", r"\$") in texts(each.figure)


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


@pytest.mark.parametrize("name", ["a\0b", "\x1b]0;x\x07", "two\nlines", "\udcff", "a\u202eb"])
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
