"""The command line as a user types it. Most runs are in this process; few need one of their own."""

import os
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
from jaxbandit.experiment.contract import Experiment


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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False
    )
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

    # More seeds: the old ones are kept, bit for bit. This process has other flags of XLA, which must be allowed.
    again = ["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--formats", "png"]
    assert main(again) == 2
    assert "allow_other_bits" in capfd.readouterr().err
    assert main([*again, "--allow-other-bits"]) == 0
    more = jb.load(out / "regret.nc")
    assert more.sizes["seed"] == 3
    assert more["regret"].isel(seed=slice(2)).equals(first["regret"])
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "1"]) == 2
    assert "holds 3" in capfd.readouterr().err

    # Another configuration is not mixed in.
    assert main(["run", "mine.py", "--out", "out", "--resume", "--seeds", "3", "--seed", "5"]) == 2
    assert "another configuration" in capfd.readouterr().err
    assert (
        main(["run", "mine.py", "--out", "out", "--overwrite", "--seed", "5", "--formats", "png"])
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
    monkeypatch.setattr("jaxbandit.experiment.driver._sweep", stop)
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
        (
            ["run", "prophet", "--seeds", "0", "--dry-run"],
            "seeds: 0; accepted: a whole number, at least 1",
        ),
        (["run", "prophet", "--devices", "0"], "devices: 0; accepted"),
        (["run", "prophet", "--sedes", "3"], "--seeds"),
        (["run", "prophet", "--seeds", "2.5"], "2.5"),
        (["run", "prophet", "--episodes", "1.5e0"], "--episodes: 1.5e0; accepted: a whole"),
        (["run", "prophet", "--episodes", "many"], "--episodes: many; accepted: a whole number"),
        (["run", "prophet", "--episodes", "1e40"], "at most 9007199254740992"),
        (["run", "prophet", "--episodes", "1e999"], "--episodes: 1e999; accepted: a whole number"),
        (["run", "prophet", "--seed", "9" * 30], "seed: 999999999999999999999999999999; accepted"),
        (
            ["run", "prophet", "--seed", "4294967296"],
            "seed: 4294967296; accepted: a whole number, at least 0",
        ),
        (["run", "prophet", "--devices", "99"], "devices: 99; accepted: 1 to"),
        (["run", "prophet", "--learners", "nothing.py", "--dry-run"], "nothing.py: no such file"),
        (
            ["run", "scaling", "--learners", "x.py", "--dry-run"],
            "no learners of your own in scaling",
        ),
        (["run", "prophet", "--formats", "gif"], "formats: 'gif'; accepted: png, svg"),
        (["list", "exprf"], "did you mean 'expref'"),
        (["show", "prophet-unifrom"], "did you mean 'prophet-uniform'"),
        (["show", "prophet-uniform", "horizon"], "accepted: name=value"),
        (["show", "prophet-uniform", "horizn=3"], "did you mean 'horizon'?"),
        (["new", "learner", "2x"], "accepted: letters, digits"),
        (["new", "lerner", "mine"], "accepted: learner, instance, experiment"),
        (["report"], "results: not given"),
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
    assert err.startswith("jaxbandit: ")
    assert err.count("\n") == 1


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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("import jaxbandit as jb", "import nowhere_to_be_found"),
            "ModuleNotFoundError: No module named",
        ),
        (("import jaxbandit as jb", "import jaxbandit as jb\n1 / 0"), "line 4: ZeroDivisionError"),
        (("num_episodes=", "episodes="), "'episodes'; did you mean 'num_episodes'?"),
        (("learners=learners, ", ""), "sweep 'regret': no 'learners'; accepted: at least"),
        (("learners=learners", "learners=[1]"), "learners is list; accepted: a dict by name"),
        (("return {", "return None and {"), "sweeps of mine: NoneType; accepted: a dict"),
        (("(options):", "(options):\n    len(3)"), "TypeError: object of type 'int' has no len()"),
    ],
)
def test_broken_experiments_are_answered_in_one_line(change, told, tmp_path, capfd):
    broken = tmp_path / "broken.py"
    broken.write_text(MINE.replace(*change, 1))
    assert main(["run", str(broken), "--out", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_resume_of_nothing_is_said(tmp_path, capfd):
    from jaxbandit.experiment.plans import check_resumable

    check_resumable(tmp_path / "new", ["a"])
    assert "holds nothing to resume, so the run starts anew" in capfd.readouterr().err


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


def test_help_of_an_experiment_says_what_it_is(capfd):
    assert main(["run", "prophet", "--help"]) == 0
    out = capfd.readouterr().out
    for wanted in (
        "The paper's regret figure",
        "prophet_practical.png",
        "Takes about",
        "--episodes",
    ):
        assert wanted in out


def test_list_explains_a_name(capfd):
    assert main(["list", "ordered-expref"]) == 0
    out = capfd.readouterr().out
    assert "n = ceil(12 s ln T / eps^2)" in out  # said of expref, and meant here
    assert 'preset "practical"' in out


def test_show_prints_an_instance_and_an_episode(capfd):
    assert main(["show", "prophet-uniform", "horizon=3", "capacity=1", "--seed", "4"]) == 0
    out = capfd.readouterr().out
    assert "MDP(H=3, k=1, A=5, ordered)" in out
    assert "optimal policy: accept from ..." in out
    assert "total reward" in out
    assert main(["show", "hard-ordered", "--policy", "uniform"]) == 0


def test_list_names_everything_with_parameters(capfd):
    assert main(["list"]) == 0
    out = capfd.readouterr().out
    for wanted in (
        "prophet ",
        "tuning",
        "ordered-expref",
        "bonus_scale=None",
        "(horizon, capacity",
    ):
        assert wanted in out


def test_bench_is_handed_over(monkeypatch):
    seen = []
    monkeypatch.setattr("jaxbandit.experiments.bench.main", seen.append)
    assert main(["bench", "--quick", "x"]) == 0
    assert seen == [["--quick", "x"]]


def test_doctor_prints_writes_and_ends_with_what_it_found(tmp_path, capsys, monkeypatch):
    import json

    from jaxbandit.doctor import report

    file = tmp_path / "report.json"
    assert main(["doctor", "--quick", "--json", str(file)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing is wrong")
    assert json.loads(file.read_text())["ok"]
    assert main(["doctor", "--quick", "--json", str(file)]) == 2
    assert "exists; accepted: a new file, or --overwrite" in capsys.readouterr().err
    monkeypatch.setattr(report.machine, "wheel_problems", lambda found: ["jaxlib is older"])
    assert main(["doctor", "--quick", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == ["jaxlib is older"]
