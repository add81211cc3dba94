"""Theory against practical constants."""

from made_up_results import draw_everything


def test_figures_and_tables_of_made_up_results():
    draw_everything("constants")
