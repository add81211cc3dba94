"""What sharing buys, on made-up results with known ratios."""

from jaxbandit.experiments import sharing
from made_up_results import draw_everything, make_up_all

from jaxbandit.experiment import Options


def test_ratios_and_the_goal():
    """Made-up regrets are 3 (ExpRef, shared ExpRef) and 2 (OrderedExpRef, shared) times sqrt(t)."""
    options = Options(seeds=4)
    datasets = make_up_all(sharing.EXPERIMENT, options)
    datasets["I1"]["regret"].loc[{"learner": "shared OrderedExpRef"}] /= 2
    text = sharing.tables(datasets, options)["sharing.md"]
    assert "shared ExpRef: at most 0.5 of ExpRef's regret on 0 of 6 panels (0 with" in text
    assert "shared OrderedExpRef: at most 0.5 of ExpRef's regret on 6 of 6 panels (6 with" in text


def test_figures_and_tables_of_made_up_results():
    draw_everything("sharing")
