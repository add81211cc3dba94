"""Figures of the ladder, from made-up results."""

from synthetic_sweep import clipped_texts, texts

from jaxbandit.experiment import Options, load_experiment


def test_figures_show_every_learner_on_its_rung(made):
    experiment = load_experiment("ladder")
    drawn = experiment.figures(made, Options())
    assert set(drawn) == {
        "ladder_tiny",
        "ladder_tiny_summary",
        "ladder_paper",
        "ladder_paper_summary",
        "ladder_segments",
    }
    for one in drawn.values():
        assert not clipped_texts(one.figure)
    shown = texts(drawn["ladder_tiny_summary"].figure)
    for label in ("prophet optimism", "UCB1 over policies", "ExpRef (theory)", "one bit"):
        assert label in shown
    assert "UCB1 over policies" not in texts(drawn["ladder_paper_summary"].figure)
