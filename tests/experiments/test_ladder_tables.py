"""Tables of the ladder, from made-up results."""

from jaxbandit.experiment import Options, load_experiment


def test_tables_say_who_is_below_uniform_play_and_what_was_tried(made):
    experiment = load_experiment("ladder")
    tables = experiment.tables(made, Options())
    assert "| below (" in tables["ladder.md"]
    assert "H = 15, k = 2, A = 5" in tables["ladder.md"]
    assert "3 segments" in tables["ladder_tuning.md"]
