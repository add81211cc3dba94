"""What ``jaxbandit new`` writes runs as it stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxbandit as jb
from jaxbandit.cli import main

pytestmark = pytest.mark.usefixtures("started")

CACHE = Path(__file__).parent.parent.parent / ".jax_cache"


def test_templates_run_as_they_stand(tmp_path, monkeypatch, capfd):
    """Each is written, and does what it says; the learner joins an experiment."""
    monkeypatch.chdir(tmp_path)
    for what in ("learner", "instance", "experiment"):
        assert main(["new", what, f"my-{what}"]) == 0
    assert main(["new", "learner", "my-learner"]) == 2
    assert "my_learner.py exists" in capfd.readouterr().err
    for file in ("my_learner.py", "my_instance.py"):
        done = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, check=False,
            env={**os.environ, "JAX_COMPILATION_CACHE_DIR": str(CACHE)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert ("passes the checks" if "learner" in file else "items left") in done.stdout
    words = ["run", "my_experiment.py", "--episodes", "200", "--seeds", "2", "--formats", "png"]
    assert main([*words, "--learners", "my_learner.py"]) == 0
    results = jb.load("results/my-experiment/regret.nc")
    assert results["learner"].values.tolist() == ["UCB-VI", "uniform", "my-learner"]
    assert main(["run", "prophet", "--learners", "my_learner.py", "--dry-run"]) == 0
    assert "my-learner" in capfd.readouterr().out
    for registry in (jb.LEARNERS, jb.INSTANCES):  # what the files registered
        registry.constructors.pop("my-learner", None)
