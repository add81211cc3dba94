"""What `check_learner` says and returns."""

import jaxbandit as jb
from jaxbandit.testing.summary import Notes, Property, Summary


def test_it_says_what_it_checks(capsys):
    summary = jb.testing.check_learner(jb.make_learner("uniform"), num_episodes=8, verbose=True)
    first, *said = capsys.readouterr().err.splitlines()
    assert first == "checking learner 'uniform'"
    assert len(said) == len(summary.properties) >= 12
    for line, row in zip(said, summary.properties, strict=True):
        assert line == f"{row.name}: {row.compared}: {row.result}"
    names = [row.name for row in summary.properties]
    assert len(set(names)) == len(names)
    jb.testing.check_learner(jb.make_learner("uniform"), num_episodes=8)
    assert capsys.readouterr() == ("", "")


def test_it_prints_as_a_table():
    summary = Summary("<mine>", (Property("a", "much longer", "b"), Property("ab", "c", "de")))
    assert repr(summary).splitlines() == [
        "learner '<mine>' keeps the contract",
        "property  what was compared  result",
        "--------  -----------------  ------",
        "a         much longer        b",
        "ab        c                  de",
    ]
    assert str(summary) == repr(summary)
    assert "<mine>" not in summary._repr_html_()
    assert "<td style='text-align:left'>much longer</td>" in summary._repr_html_()


def test_notes():
    notes = Notes("mine")
    notes.holds("x", "y")
    notes.require(True, "nothing")
    assert notes.summary().properties == (Property("x", "y", "holds"),)
