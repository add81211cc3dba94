"""The command line as a user types it. Most runs are in this process; few need one of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from users_experiment import MINE

import jaxbandit as jb
from jaxbandit.cli import main

pytestmark = pytest.mark.usefixtures("started")

CACHE = Path(__file__).parent.parent.parent / ".jax_cache"


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return str(path)


def test_a_users_file_end_to_end(mine, tmp_path, monkeypatch, capfd):
    """The installed command in a process of its own; then everything one does with its results."""
    monkeypatch.chdir(tmp_path)
    devices = str(min(2, len(os.sched_getaffinity(0))))
    words = [
        "run",
        "mine.py",
        "--out",
        "out",
        "--devices",
        devices,
        "--compilation-cache",
        str(CACHE),
    ]
    command = [sys.executable, "-m", "jaxbandit.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "final regret" in done.stdout
    assert "95 % interval" in done.stdout
    out = Path("out")
    for name in ("regret.nc", "regret.png", "regret.svg", "regret.pdf", "final_regret.txt"):
        assert (out / name).stat().st_size > 0
    first = jb.load(out / "regret.nc")
    assert first.sizes["seed"] == 2
    assert first["episode"].values[-1] == 400

    # Finished results are not replaced unless told.
    assert main(["run", "mine.py", "--out", "out", "--episodes", "4e2"]) == 2
    assert "--resume" in capfd.readouterr().err

    # More seeds: the old ones are kept, bit for bit.
    again = ["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--formats", "png"]
    assert main(again) == 0
    more = jb.load(out / "regret.nc")
    assert more.sizes["seed"] == 3
    assert more["regret"].isel(seed=slice(2)).equals(first["regret"])
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "1"]) == 2
    assert "holds 3" in capfd.readouterr().err

    # Another configuration is not mixed in.
    assert (
        main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--root-seed", "5"])
        == 2
    )
    assert "another configuration" in capfd.readouterr().err
    assert (
        main(
            [
                "run",
                "mine.py",
                "--out",
                "out",
                "--overwrite",
                "--root-seed",
                "5",
                "--formats",
                "png",
            ]
        )
        == 0
    )
    assert not jb.load(out / "regret.nc")["regret"].equals(first["regret"])

    capfd.readouterr()
    assert (
        main(["plot", "out", "--scale", "loglog", "--kind", "quantile", "--out", "plots/mine.svg"])
        == 0
    )
    assert capfd.readouterr().out.split() == ["plots/mine.svg"]
    assert main(["plot", "out/regret.nc", "--what", "policy", "--formats", "png"]) == 0
    assert (out / "regret_policy.png").exists()
    assert main(["plot", "out/regret.nc", "--what", "policy", "--formats", "png"]) == 2
    assert "regret_policy.png exists" in capfd.readouterr().err
    assert main(["plot", "out/regret.nc", "--what", "policy", "--overwrite"]) == 0
    assert main(["plot", "out/regret.nc", "--out", "x.jpg"]) == 2
    assert "x.jpg ends in '.jpg'; accepted: png" in capfd.readouterr().err

    # A misspelt folder is not a new run.
    assert main(["run", "mine.py", "--out", "oot", "--resume"]) == 2
    assert "did you mean 'out'?" in capfd.readouterr().err
    assert main(["plot", "out/regret.nc", "--learners", "UCB-IV"]) == 2
    assert "UCB-VI" in capfd.readouterr().err
    assert main(["report", "out"]) == 0
    assert (out / "report.html").stat().st_size > 1000


def test_dry_run_prints_the_plan_and_writes_nothing(mine, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["run", mine, "--dry-run", "--full"]) == 0
    out = capfd.readouterr().out
    assert "6 lanes of 800 episodes" in out
    assert "results/mine" in out
    # importing the user's file leaves its compiled form beside it, as Python does
    assert {path for path in tmp_path.iterdir() if path.name != "__pycache__"} == {Path(mine)}


def test_interruption_says_how_to_continue(mine, tmp_path, monkeypatch, capfd):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxbandit.cli.driver._sweep", stop)
    assert main(["run", mine, "--out", "o ut"]) == 130
    assert f"jaxbandit run {mine} --out 'o ut' --resume" in capfd.readouterr().err
    Path("o ut/checkpoints/regret").mkdir(parents=True)
    assert main(["run", mine, "--out", "o ut"]) == 2
    assert "unfinished run" in capfd.readouterr().err


def test_mistakes_in_a_users_file_name_the_line(tmp_path, capfd):
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert main(["run", str(broken)]) == 2
    assert "broken.py, line 1" in capfd.readouterr().err
    broken.write_text("x = 1\n")
    assert main(["run", str(broken)]) == 2
    assert "EXPERIMENT is NoneType" in capfd.readouterr().err
    broken.write_text(MINE.replace('"ucbvi"', '"ucbiv"'))
    assert main(["run", str(broken), "--out", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert "did you mean 'ucbvi'" in err
    assert "(broken.py, line 9)" in err


def test_resume_of_nothing_is_said(tmp_path, capfd):
    from jaxbandit.cli.driver import check_resumable

    check_resumable(tmp_path / "new", ["a"])
    assert "holds nothing to resume, so the run starts anew" in capfd.readouterr().err


def test_bench_is_handed_over(monkeypatch):
    seen = []
    monkeypatch.setattr("jaxbandit.experiments.bench.main", seen.append)
    assert main(["bench", "--quick", "x"]) == 0
    assert seen == [["--quick", "x"]]


def test_doctor_prints_writes_and_ends_with_what_it_found(tmp_path, capsys, monkeypatch):
    import json

    from jaxbandit.inspect import doctor

    file = tmp_path / "report.json"
    assert main(["doctor", "--quick", "--json", str(file)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing is wrong")
    assert json.loads(file.read_text())["ok"]
    assert main(["doctor", "--quick", "--json", str(file)]) == 2
    assert "exists; accepted: a new file, or --overwrite" in capsys.readouterr().err
    monkeypatch.setattr(doctor, "wheel_problems", lambda found: ["jaxlib is older"])
    assert main(["doctor", "--quick", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == ["jaxlib is older"]
