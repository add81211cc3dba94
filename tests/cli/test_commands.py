"""The command line is read, mistakes are answered in one line; `list` and `show`."""

import dataclasses
import inspect
import subprocess
import sys

import pytest
from users_experiment import MINE

import jaxbandit as jb
from jaxbandit.cli import commands, main

pytestmark = pytest.mark.usefixtures("started")


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
        (
            ["run", "prophet", "--root-seed", "9" * 30],
            "seed: 999999999999999999999999999999; accepted",
        ),
        (
            ["run", "prophet", "--root-seed", "4294967296"],
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
        (["run", "prophet", "--quick"], "unknown option --quick; see jaxbandit run --help"),
        (["run", "prophet", "--bogus", "3"], "unknown option --bogus; see jaxbandit run --help"),
        (
            ["run", "prophet", "--seed", "3"],
            "accepted: --seeds N for the number of runs, --root-seed N",
        ),
        (["plot", "x.nc", "--what", "pollicy"], "what: 'pollicy'; did you mean 'policy'?"),
        (
            ["--versoin"],
            "unknown option --versoin; accepted: --help, --version, or a command: list",
        ),
        (["bench", "--lanes", "0"], "lanes: 0; accepted: a whole number, at least 1"),
        (["bench", "--rounds", "0"], "rounds: 0; accepted: a whole number, at least 1"),
        (["bench", "--num-episodes", "0"], "num_episodes: 0; accepted: a whole number, at least 1"),
        (["plot", "nowhere.nc", "--kind", "skewed"], "does not exist"),
    ],
)
def test_mistakes_are_answered_in_words(words, told, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    err = capfd.readouterr().err
    assert told in err
    assert err.startswith("jaxbandit: ")
    assert err.count("\n") == 1


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


@pytest.mark.parametrize("command", commands.COMMANDS.values())
def test_a_command_is_frozen_and_documented(command):
    assert dataclasses.is_dataclass(command)
    assert command.__dataclass_params__.frozen
    assert command.__doc__
    source = inspect.getsource(command)
    own = [name for name in vars(command).get("__annotations__", {}) if name in source]
    assert source.count('"""') // 2 >= 1 + len(own), "a field without its text, which --help shows"


pytestmark = pytest.mark.usefixtures("started")


def test_list_explains_a_name(capfd):
    assert main(["list", "ordered-expref"]) == 0
    out = capfd.readouterr().out
    assert "n = ceil(12 s ln T / eps^2)" in out  # said of expref, and meant here
    assert 'preset "practical"' in out


def test_list_names_everything_with_parameters(capfd):
    assert main(["list"]) == 0
    out = capfd.readouterr().out
    for wanted in (
        "prophet ",
        "tuning",
        "learners that see bandit feedback",
        "learners that see semi-bandit feedback",
        "ordered-expref",
        "bonus_scale=None",
        "(horizon, capacity",
    ):
        assert wanted in out


pytestmark = pytest.mark.usefixtures("started")


def test_show_prints_an_instance_and_an_episode(capfd):
    assert main(["show", "prophet-uniform", "horizon=3", "capacity=1", "--seed", "4"]) == 0
    out = capfd.readouterr().out
    assert "MDP(H=3, k=1, A=5, ordered)" in out
    assert "optimal policy: accept from ..." in out
    assert "total reward" in out
    assert main(["show", "hard-ordered", "--policy", "uniform"]) == 0


def test_show_draws_the_episode(capfd, tmp_path):
    file = tmp_path / "episode.png"
    asked = ["show", "prophet-uniform", "horizon=3", "capacity=1", "--figure", str(file)]
    assert main(asked) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capfd.readouterr().out
    assert main(asked) != 0
    assert "exists; give another --figure, or --overwrite" in capfd.readouterr().err
    assert main([*asked[:-1], str(tmp_path / "episode.jpg")]) != 0
    assert "ends in '.jpg'; accepted" in capfd.readouterr().err
