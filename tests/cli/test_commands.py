"""The command line as a user types it: it is read, mistakes are answered in one line, and each command does its work."""

import dataclasses
import inspect
import io
import json
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from users_experiment import MINE

import jaxbandit as jb
from jaxbandit.cli import COMMANDS, doctor, main, parse

pytestmark = pytest.mark.usefixtures("started")


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
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n")
    assert f"jaxbandit {jb.__version__}" in done.stdout
    assert "did you mean 'prophet'?" in done.stderr


MISTAKES = {
    "rnu": "did you mean 'run'?",
    "--versoin": "unknown option --versoin; accepted: --help, --version, or a command: list",
    "run": "EXPERIMENT",
    "run prophett": "did you mean 'prophet'?",
    "run nothing.py": "no such file",
    "run prophet --seeds 0 --dry-run": "seeds: 0; accepted: a whole number, at least 1",
    "run prophet --devices 0": "devices: 0; accepted",
    "run prophet --devices 99": "devices: 99; accepted: 1..",
    "run prophet --sedes 3": "did you mean '--seeds'?",
    "run prophet --seed 3": "accepted: --seeds N for the number of runs, --root-seed N",
    "run prophet --seeds=2.5": "--seeds: 2.5; accepted: a whole number",
    "run prophet --episodes 1e40": "at most 9007199254740992",
    "run prophet --episodes 1e999": "--episodes: 1e999; accepted: a whole number",
    "run prophet --root-seed 4294967296": "seed: 4294967296; accepted: a whole number, at least 0",
    "run prophet --learners nothing.py --dry-run": "nothing.py: no such file",
    "run scaling --learners x.py --dry-run": "no learners of your own in scaling",
    "run prophet --instance riverswim --dry-run": "no instance of your own in prophet",
    "run prophet --formats gif": "formats: 'gif'; accepted: png, svg",
    "run prophet --resume --overwrite": "one of the two",
    "run prophet --bogus 3": "unknown option --bogus; see jaxbandit run --help",
    "run verdict --results nowhere": "run first: jaxbandit run prophet",
    "list exprf": "did you mean 'expref'",
    "show prophet-unifrom": "did you mean 'prophet-uniform'",
    "show prophet-uniform horizon": "accepted: name=value",
    "new learner 2x": "accepted: letters, digits",
    "new lerner mine": "accepted: learner, instance, experiment",
    "plot nowhere.nc": "does not exist",
    "plot x.nc --kind median": "quantile",
    "plot x.nc --what pollicy": "what: 'pollicy'; did you mean 'policy'?",
    "report": "results: not given",
    "bench --lanes 0": "lanes: 0; accepted: a whole number, at least 1",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_answered_in_one_line(words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    err = capfd.readouterr().err
    assert MISTAKES[words] in err
    assert err.startswith("jaxbandit: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_mistakes_read_the_same_where_boxes_are_ascii():
    said = {"run prophet --seeds 2.5": "^--seeds: 2.5; accepted", "show": "^INSTANCE is missing"}
    for words, saying in said.items():
        with redirect_stdout(io.StringIO()), pytest.raises(ValueError, match=saying):
            parse(words.split())


def test_help_of_an_experiment_says_what_it_is(capfd):
    assert main(["run", "prophet", "--help"]) == 0
    out = capfd.readouterr().out
    for wanted in ("The paper's regret figure", "prophet_practical.png", "Takes", "--episodes"):
        assert wanted in out


@pytest.mark.parametrize("command", COMMANDS.values())
def test_a_command_is_frozen_and_documented(command):
    assert command.__dataclass_params__.frozen
    source = inspect.getsource(command)
    own = [each.name for each in dataclasses.fields(command) if f"\n    {each.name}:" in source]
    assert source.partition("def do")[0].count('"""') >= 2 + 2 * len(own), "a field without its text, which --help shows"  # fmt: skip


def test_list(capfd):
    assert main(["list"]) == 0
    out = capfd.readouterr().out
    for wanted in ("prophet ", "tuning", "learners that see bandit feedback", "ordered-expref",
                   "learners that see semi-bandit feedback", "bonus_scale=None", "(horizon, capacity"):  # fmt: skip
        assert wanted in out
    assert out.index("see bandit") < out.index("  expref") < out.index("see semi") < out.index("  ucbvi")  # fmt: skip
    assert main(["list", "ordered-expref"]) == 0
    out = capfd.readouterr().out
    assert "n = ceil(12 s ln T / eps^2)" in out  # said of expref, and meant here
    assert 'preset "practical"' in out


def test_show(capfd, tmp_path):
    file = tmp_path / "episode.png"
    words = ["show", "prophet-uniform", "horizon=3", "capacity=1", "--seed", "4", "--figure", str(file)]  # fmt: skip
    assert main(words) == 0
    out = capfd.readouterr().out
    for wanted in ("MDP(H=3, k=1, A=5, ordered)", "optimal policy: accept from ...", "total reward", str(file)):  # fmt: skip
        assert wanted in out
    assert file.read_bytes().startswith(b"\x89PNG")
    assert main(words) == 2
    assert "exists; give another --figure, or --overwrite" in capfd.readouterr().err
    assert main([*words[:-1], str(tmp_path / "episode.jpg")]) == 2
    assert "ends in '.jpg'; accepted" in capfd.readouterr().err
    assert main(["show", "hard-ordered", "--policy", "uniform"]) == 0


def test_templates_run_as_they_stand(tmp_path, monkeypatch, capfd):
    """Each is written, and does what it says; the learner joins an experiment."""
    monkeypatch.chdir(tmp_path)
    try:
        for what in ("learner", "instance", "experiment"):
            assert main(["new", what, f"my-{what}"]) == 0
        assert main(["new", "learner", "my-learner"]) == 2
        assert "my_learner.py exists" in capfd.readouterr().err
        for file, wanted in (("my_learner.py", "passes the checks"), ("my_instance.py", "items left")):  # fmt: skip
            runpy.run_path(file, run_name="__main__")
            assert wanted in capfd.readouterr().out
        words = ["run", "my_experiment.py", "--episodes", "200", "--seeds", "2", "--formats", "png"]
        assert main([*words, "--learners", "my_learner.py"]) == 0
        learners = jb.load("results/my-experiment/regret.nc")["learner"].values.tolist()
        assert learners == ["UCB-VI", "uniform", "my-learner"]
    finally:
        for registry in (jb.LEARNERS, jb.INSTANCES):  # what the files registered
            for name in ("my-learner", "my-instance"):
                registry.constructors.pop(name, None)


def test_results_of_a_run(finished):
    text = (finished / "stdout").read_text()
    assert "final regret" in text
    assert "95 % interval" in text
    assert text.splitlines()[-1] == "the figure: out/regret.png"
    for name in ("regret.nc", "regret.png", "regret.svg", "regret.pdf", "final_regret.txt"):
        assert (finished / "out" / name).stat().st_size > 0
    ds = jb.load(finished / "out" / "regret.nc")
    assert (ds.sizes["seed"], ds["episode"].values[-1]) == (2, 400)


def test_finished_results_are_kept_unless_told(out, capfd):
    first = jb.load(out / "regret.nc")
    run = ["run", "mine.py", "--out", "out"]
    assert main([*run, "--episodes", "4e2"]) == 2
    assert "--resume" in capfd.readouterr().err
    # More seeds: the old ones are kept, bit for bit.
    assert main([*run, "--resume", "--seeds", "3", "--formats", "png"]) == 0
    more = jb.load(out / "regret.nc")
    assert more.sizes["seed"] == 3
    assert more["regret"].isel(seed=slice(2)).equals(first["regret"])
    for words, saying in (
        (["--resume", "--seeds", "1"], "holds 3"),
        (["--resume", "--seeds", "3", "--root-seed", "5"], "another configuration"),
        (["--out", "oot", "--resume"], "did you mean 'out'?"),  # no new run
    ):
        assert main([*run, *words]) == 2
        assert saying in capfd.readouterr().err
    assert main([*run, "--overwrite", "--root-seed", "5", "--formats", "png"]) == 0
    assert not jb.load(out / "regret.nc")["regret"].equals(first["regret"])


def test_plot_and_report(out, capfd):
    plot = ["plot", "out/regret.nc"]
    assert main([*plot, "--scale", "loglog", "--kind", "quantile", "--out", "plots/mine.svg"]) == 0
    assert capfd.readouterr().out.split() == ["plots/mine.svg"]
    policy = [*plot, "--what", "policy", "--format", "png"]
    assert main(policy) == 0
    assert (out / "regret_policy.png").exists()
    for words, saying in (
        (policy, "regret_policy.png exists; give another --out, or --overwrite"),
        ([*plot, "--out", "x.jpg"], "x.jpg ends in '.jpg'; accepted: png"),
        ([*plot, "--learners", "UCB-IV"], "did you mean 'UCB-VI'"),
        ([*policy, "--overwrite", "--kind", "t"], "kind: not for --what policy; accepted: "),
    ):
        assert main(words) == 2
        assert saying in capfd.readouterr().err
    assert main([*policy, "--overwrite", "--learners", "uni*"]) == 0
    assert main(["plot", "out", "--no-subtitle", "--learners", "UCB*", "--out", "a.png"]) == 0
    assert "caption: " in capfd.readouterr().out
    assert main(["report", "out"]) == 0
    assert (out / "report.html").stat().st_size > 1000


def test_dry_run_prints_the_plan_and_writes_nothing(mine, tmp_path, capfd):
    assert main(["run", mine, "--dry-run", "--full"]) == 0
    out = capfd.readouterr().out
    assert "6 lanes of 800 episodes" in out
    assert "results/mine" in out
    # importing the user's file leaves its compiled form beside it, as Python does
    assert {path.name for path in tmp_path.iterdir()} <= {mine, "__pycache__"}


def test_interruption_says_how_to_continue(mine, monkeypatch, capfd):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxbandit.cli.driver._sweep", stop)
    assert main(["run", mine, "--out", "o ut"]) == 130
    assert f"jaxbandit run {mine} --out 'o ut' --resume" in capfd.readouterr().err
    Path("o ut/checkpoints/regret").mkdir(parents=True)
    assert main(["run", mine, "--out", "o ut"]) == 2
    assert "unfinished run" in capfd.readouterr().err


BROKEN = {
    "def f(:\n": "broken.py, line 1",
    "x = 1\n": "EXPERIMENT is NoneType",
    ('"ucbvi"', '"ucbiv"'): "did you mean 'ucbvi'",
    ("import jaxbandit as jb", "import nowhere"): "ModuleNotFoundError: No module named",
    ("import jaxbandit as jb", "import jaxbandit as jb\n1 / 0"): "line 4: ZeroDivisionError",
    ("num_episodes=", "episodes="): "'episodes'; did you mean 'num_episodes'?",
    ("learners=learners, ", ""): "sweep 'regret': no 'learners'; accepted: at least",
    ("learners=learners", "learners=[1]"): "learners is list; accepted: a dict by name",
    ("return {", "return None and {"): "sweeps of mine: NoneType; accepted: a dict",
    ("(options):", "(options):\n    len(3)"): "TypeError: object of type 'int' has no len()",
}


@pytest.mark.parametrize("change", BROKEN)
def test_broken_experiments_are_answered_in_one_line(change, tmp_path, capfd):
    broken = tmp_path / "broken.py"
    broken.write_text(change if isinstance(change, str) else MINE.replace(*change, 1))
    assert main(["run", str(broken), "--out", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert BROKEN[change] in err
    assert err.count("\n") == 1
    if '"ucbiv"' in change:
        assert "(broken.py, line 9)" in err


def test_bench_is_handed_over(monkeypatch):
    seen = []
    monkeypatch.setattr("jaxbandit.experiments.bench.main", seen.append)
    assert main(["bench", "--quick", "x"]) == 0
    assert seen == [["--quick", "x"]]


def test_doctor_prints_writes_and_ends_with_what_it_found(tmp_path, capsys, monkeypatch):
    file = tmp_path / "report.json"
    words = ["doctor", "--quick", "--json"]
    assert main([*words, str(file)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing is wrong")
    assert json.loads(file.read_text())["ok"]
    assert main([*words, str(file)]) == 2
    assert "exists; give another --json, or --overwrite" in capsys.readouterr().err
    monkeypatch.setattr(doctor, "wheel_problems", lambda found: ["jaxlib is older"])
    assert main([*words, "-"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == ["jaxlib is older"]
