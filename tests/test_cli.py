"""The command line as a user types it. Most runs are in this process; few need one of their own."""

import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jaxbandit as jb
from jaxbandit.cli import main

CACHE = Path(__file__).parent.parent / ".jax_cache"
MINE = '''"""A tiny experiment of a user (nowhere in the paper)."""

import jaxbandit as jb
from jaxbandit.experiments.base import Experiment


def sweeps(options):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    learners = {"UCB-VI": jb.make_learner("ucbvi"), "uniform": jb.make_learner("uniform")}
    return {
        "regret": dict(
            learners=learners, instances={"I1": mdp}, record=jb.record.linear(4),
            num_episodes=options.choose_episodes(400, full=800), num_seeds=options.choose_seeds(2, full=3),
        )
    }


def figures(datasets, options):
    return {"regret": jb.plot_regret(datasets["regret"])}


EXPERIMENT = Experiment("mine", __doc__, sweeps, figures)
'''


@pytest.fixture(autouse=True, scope="module")
def _started():
    jax.devices()  # so that commands in this process leave its devices as they are for other tests


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return str(path)


def run_python(code, cwd):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False)
    return done.returncode, done.stdout, done.stderr


def test_help_and_version_start_nothing_heavy(tmp_path):
    code = """
import sys
from jaxbandit.cli import main
assert main(["--help"]) == 0
assert main(["run", "--help"]) == 0
assert main(["--version"]) == 0
assert main(["list", "experiments"]) == 0
assert main(["run", "prophte"]) == 2
print(sorted({"jax", "xarray", "matplotlib", "scipy"} & set(sys.modules)))
"""
    status, out, err = run_python(code, tmp_path)
    assert status == 0, err
    assert out.endswith("[]\n")
    assert f"jaxbandit {jb.__version__}" in out
    assert "did you mean 'prophet'?" in err


def test_a_users_file_end_to_end(mine, tmp_path, monkeypatch, capfd):
    """The installed command in a process of its own; then everything one does with its results."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "mine.py", "--out", "out", "--devices", "2", "--compilation-cache", str(CACHE)]
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

    # More seeds: the old ones are kept, bit for bit (2 devices there, 1 here).
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--formats", "png"]) == 0
    more = jb.load(out / "regret.nc")
    assert more.sizes["seed"] == 3
    assert more["regret"].isel(seed=slice(2)).equals(first["regret"])
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "1"]) == 2
    assert "holds 3" in capfd.readouterr().err

    # Another configuration is not mixed in.
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--seed", "5"]) == 2
    assert "another configuration" in capfd.readouterr().err
    assert main(["run", "mine.py", "--out", "out", "--overwrite", "--seed", "5", "--formats", "png"]) == 0
    assert not jb.load(out / "regret.nc")["regret"].equals(first["regret"])

    capfd.readouterr()
    assert main(["plot", "out", "--scale", "loglog", "--kind", "quantile", "--out", "plots/mine.svg"]) == 0
    assert capfd.readouterr().out.split() == ["plots/mine.svg"]
    assert main(["plot", "out/regret.nc", "--what", "policy", "--formats", "png"]) == 0
    assert (out / "regret_policy.png").exists()
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
    assert list(tmp_path.iterdir()) == [Path(mine)]


def test_interruption_says_how_to_continue(mine, tmp_path, monkeypatch, capfd):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxbandit.experiments.running._sweep", stop)
    assert main(["run", mine, "--out", "o ut"]) == 130
    assert f"jaxbandit run {mine} --out 'o ut' --resume" in capfd.readouterr().err
    Path("o ut/checkpoints/regret").mkdir(parents=True)
    assert main(["run", mine, "--out", "o ut"]) == 2
    assert "unfinished run" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["run", "prophett"], "did you mean 'prophet'?"),
        (["run", "nothing.py"], "no such file"),
        (["run", "prophet", "--seeds", "0", "--dry-run"], "at least 1"),
        (["run", "prophet", "--devices", "0"], "devices: 0; accepted"),
        (["run", "prophet", "--sedes", "3"], "--seeds"),
        (["run", "prophet", "--seeds", "2.5"], "2.5"),
        (["run", "prophet", "--episodes", "1.5e0"], "not a whole number"),
        (["run", "prophet", "--formats", "gif"], "png"),
        (["run", "verdict", "--results", "nowhere"], "run first: jaxbandit run prophet"),
        (["run", "prophet", "--resume", "--overwrite"], "one of the two"),
        (["plot", "nowhere.nc"], "does not exist"),
        (["plot", "x.nc", "--kind", "median"], "quantile"),
        (["report", "nowhere"], "does not exist"),
        (["run"], "EXPERIMENT"),
    ],
)
def test_mistakes_are_answered_in_words(words, told, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    err = capfd.readouterr().err
    assert told in err
    assert "Traceback" not in err


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


def test_list_names_everything_with_parameters(capfd):
    assert main(["list"]) == 0
    out = capfd.readouterr().out
    for wanted in ("prophet ", "tuning", "ordered-expref", "bonus_scale=None", "(horizon, capacity"):
        assert wanted in out


def test_bench_is_handed_over(monkeypatch):
    seen = []
    monkeypatch.setattr("jaxbandit.experiments.bench.main", seen.append)
    assert main(["bench", "--quick", "x"]) == 0
    assert seen == [["--quick", "x"]]
