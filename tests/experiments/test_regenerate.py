"""The command that makes everything committed again runs experiments that exist, and they draw the committed figures."""

import pytest
from jaxbandit.experiments import regenerate

from jaxbandit.experiment import catalogue


def test_every_step_is_an_experiment_and_nothing_runs_dry(capsys):
    regenerate.main(["--dry-run"])
    printed = capsys.readouterr().out.splitlines()
    run = [line.split(" run ")[1].split()[0] for line in printed if " run " in line]
    assert set(run) <= set(catalogue())
    assert printed[-1].endswith("store_notebooks.py")
    assert sum("experiments.references" in line for line in printed) == 2


def test_committed_figures_are_copied_and_no_others(tmp_path):
    figures, results = tmp_path / "figures", tmp_path / "results"
    for folder, names in (
        (figures, ["a.png", "ladder_riverswim.png"]),
        (results, ["a.png", "b.png"]),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(folder.name.encode())
    (results / "ladder_own.png").write_bytes(b"own")
    copied = regenerate.copy_figures("riverswim", results, figures)
    assert copied == ["a.png", "ladder_riverswim.png"]
    assert (figures / "ladder_riverswim.png").read_bytes() == b"own"
    assert not (figures / "b.png").exists()
    assert regenerate.copy_figures("small", results, figures) == []


def test_a_step_that_is_none_is_named(capsys):
    with pytest.raises(SystemExit):
        regenerate.main(["profet"])
    assert "STEP: 'profet'; accepted: prophet, small" in capsys.readouterr().err
