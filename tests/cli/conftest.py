"""A user's experiment, run once for all tests of the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from users_experiment import MINE

CACHE = Path(__file__).parent.parent.parent / ".jax_cache"


@pytest.fixture
def mine(tmp_path, monkeypatch, started):
    """The file of a user, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    return "mine.py"


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with that file and what the installed command wrote to out/, in a process of its own."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "mine.py").write_text(MINE)
    devices = str(min(2, len(os.sched_getaffinity(0))))
    command = [sys.executable, "-m", "jaxbandit.cli", "run", "mine.py", "--out", "out"]
    command += ["--devices", devices, "--compilation-cache", str(CACHE)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    return folder


@pytest.fixture
def out(finished, tmp_path, monkeypatch, started):
    """A copy of it, which the test may change."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("out")
