"""What a learner runs: whatever it reaches changes its digest, how it is written does not, and a checkpoint
never answers for another program."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.programs import program_of

MODULE = """
import jaxbandit as jb

SCALE = 2.0
LIMITS = {"low": 1, "high": [2, 3]}


class Table:
    def __init__(self, size):
        self.size = size

    def look(self, x):
        return x + self.size


TABLE = Table(3)


def helper(x):
    words = f"{x!r} and {SCALE:.3f} of {'it'}"
    return len(words) * SCALE


def deep(x):
    return helper(x) + LIMITS["low"]


def halving(t):
    return 1 / (1 + t)


def make(shift, schedule=halving):
    def init(problem, constants, key):
        return 0

    def act(state, key, rate=0.5):
        return [deep(y) + shift for y in (state, key)] + [rate, TABLE.look(1), schedule(3)]

    def update(state, policy, feedback, constants):
        return state

    return jb.Learner(init, act, update, name="mine")


LEARNER = make(1)
"""
"""A learner that uses no library (their versions count too), and is never run."""

EDITS = {
    "helper": ("len(words) * SCALE", "len(words) + SCALE"),
    "constant": ("SCALE = 2.0", "SCALE = 2.5"),
    "constant inside another": ('"high": [2, 3]', '"high": [2, 4]'),
    "default": ("rate=0.5", "rate=0.25"),
    "closure": ("make(1)", "make(2)"),
    "attribute": ("TABLE = Table(3)", "TABLE = Table(4)"),
    "method": ("return x + self.size", "return x - self.size"),
    "schedule": ("1 / (1 + t)", "1 / (2 + t)"),
    "other schedule": ("make(1)", "make(1, schedule=lambda t: t)"),
    "act itself": ("(state, key)]", "(key, state)]"),
    "feedback": ('name="mine"', 'name="mine", feedback="trajectory"'),
}
LAYOUT = {
    "comment": ("    return helper(x) +", "    # why\n    return helper(x) +"),
    "docstring": ("def deep(x):", 'def deep(x):\n    """Adds."""\n'),
    "class docstring": ("class Table:", 'class Table:\n    """Holds a size."""\n'),
    "white space": (
        "def halving(t):\n    return 1 / (1 + t)",
        "def halving(t):\n\n    return 1/(1+t)",
    ),
    "lines before it": ("import jaxbandit as jb\n", "import jaxbandit as jb\n\n\nUNUSED = 3\n\n"),
    "quotes": ('LIMITS["low"]', "LIMITS['low']"),
}


def load(folder, text, name="mine_program"):
    """The learner of a module with this text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LEARNER


def edited(text, change):
    old, new = change
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize("name", EDITS)
def test_what_a_learner_reaches_changes_its_digest(tmp_path, name):
    before = program_of(load(tmp_path / "before", MODULE))
    after = program_of(load(tmp_path / "after", edited(MODULE, EDITS[name])))
    assert after.digest != before.digest
    assert after.changes(before.parts)


@pytest.mark.parametrize("name", LAYOUT)
def test_how_it_is_written_does_not(tmp_path, name):
    before = program_of(load(tmp_path / "before", MODULE))
    after = program_of(load(tmp_path / "after", edited(MODULE, LAYOUT[name])))
    assert after == before


def test_changes_name_what_changed(tmp_path):
    before = program_of(load(tmp_path / "before", MODULE))
    after = program_of(load(tmp_path / "after", edited(MODULE, EDITS["helper"])))
    assert after.changes(before.parts) == ["mine_program.helper"]


def with_constant(value):
    def act(state, key, constants):
        return value

    return jb.make_learner("uniform")._replace(act=act)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(3), np.arange(3) + 1),
        (np.zeros(2, np.float32), np.zeros(2)),
        (jax.random.key(0), jax.random.key(1)),
        (np.array(["a", [1]], object), np.array(["a", [2]], object)),
        ({"a", "b"}, {"a", "c"}),
        (pathlib.PurePosixPath("a"), pathlib.PurePosixPath("b")),
        (float, int),
    ],
)
def test_values_are_compared_by_their_content(one, other):
    import copy

    digest = program_of(with_constant(one)).digest
    assert program_of(with_constant(copy.deepcopy(one))).digest == digest
    assert program_of(with_constant(other)).digest != digest


def test_an_unidentifiable_object_is_like_no_other():
    learner = with_constant(threading.Lock())
    assert program_of(learner).digest != program_of(learner).digest


@pytest.mark.parametrize("name", jb.LEARNERS.names())
def test_every_learner_of_the_package_is_identifiable(name):
    values = {"values": np.array([[0.0, 1.0]])}
    needed = {
        "fixed": {"policy": np.zeros((2, 2), np.int32)},
        "prophet-optimism": values,
    }
    one, two = (program_of(jb.make_learner(name, **needed.get(name, {}))) for _ in range(2))
    assert one == two


def test_another_process_finds_the_same_digests():
    """Nothing in them is an address or the order of a set."""
    program = """
import jaxbandit as jb
from jaxbandit.programs import program_of
for name in ("ucbvi", "expref", "psrl"):
    print(program_of(jb.make_learner(name)).digest)
"""
    there = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.split()
        for seed in ("1", "2")
    ]  # fmt: skip
    here = [program_of(jb.make_learner(name)).digest for name in ("ucbvi", "expref", "psrl")]
    assert there == [here, here]


def other_python():
    """Another Python that has what the package needs: named by OTHER_PYTHON, or found on the path."""
    named = [os.environ.get("OTHER_PYTHON"), *(f"python3.{minor}" for minor in (14, 13, 12))]
    for name in named:
        path = name and shutil.which(name)
        if path and f".{sys.version_info.minor}" != pathlib.Path(path).suffix:
            ask = [path, "-c", "import jax, numpy"]
            if subprocess.run(ask, capture_output=True, check=False).returncode == 0:
                return path
    return None


def test_another_python_finds_the_same_digest(tmp_path):
    python = other_python()
    if python is None:
        pytest.skip("no other Python with jax here; name one with OTHER_PYTHON")
    here = program_of(load(tmp_path, MODULE)).digest
    program = "import mine_program; from jaxbandit.programs import program_of; "
    program += "print(program_of(mine_program.LEARNER).digest)"
    root = pathlib.Path(jb.__file__).parent.parent
    done = subprocess.run(
        [python, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == here


RUNNABLE = """
import jax.numpy as jnp
import jaxbandit as jb

OFFSET = 1
STRANGE = None


def helper(actions):
    return actions + OFFSET


def init(problem, constants, key):
    return jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)


def act(state, key, constants):
    assert STRANGE is STRANGE
    return helper(state)


def update(state, policy, feedback, constants):
    return state


LEARNER = jb.Learner(init, act, update, name="mine")
"""


def run(learner, folder, **options):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
    return jb.sweep(
        {"M": learner}, {"I": mdp}, 100, 2, record=jb.record.linear(2), progress=False,
        checkpoint=folder, **options,
    )  # fmt: skip


def test_a_checkpoint_never_answers_for_an_edited_helper(tmp_path):
    first = run(load(tmp_path / "one", RUNNABLE), tmp_path / "run")
    run(load(tmp_path / "same", "# a comment\n" + RUNNABLE), tmp_path / "run")
    text = edited(RUNNABLE, ("actions + OFFSET", "actions * OFFSET"))
    with pytest.warns(
        UserWarning, match=r"'M' is not what it was .*changed: mine_program\.helper\)"
    ):
        second = run(load(tmp_path / "two", text), tmp_path / "run")
    assert (second["regret"].values != first["regret"].values).all()
    alone = run(load(tmp_path / "three", text), None)
    assert second["regret"].values.tobytes() == alone["regret"].values.tobytes()
    assert [path.name[:10] for path in (tmp_path / "run").glob("stale-*")] == ["stale-done"]


def test_what_cannot_be_identified_is_not_continued(tmp_path):
    learner = load(
        tmp_path / "one", edited(RUNNABLE, ("STRANGE = None", "STRANGE = (x for x in ())"))
    )
    run(learner, tmp_path / "run")
    with pytest.warns(UserWarning, match="its runs are made anew"):
        run(learner, tmp_path / "run")


def test_a_file_that_cannot_be_read_as_python_is_no_source(tmp_path):
    """As text with code inside: the instructions are what the function is."""
    file = tmp_path / "text.md"
    code = "def double(x):\n    return 2 * x\n"
    file.write_text(f"{code}(an open bracket\n", encoding="utf-8")
    place = {}
    exec(compile(code, str(file), "exec"), place)
    assert program_of(place["double"]).digest == program_of(place["double"]).digest


@pytest.mark.parametrize("name", ["OFFSET", "helper"])
def test_a_process_runs_what_the_learner_is_now(tmp_path, name):
    """As in a notebook, where a constant or a helper gets another value between two cells: jax would know the functions
    and run what it compiled of them."""
    learner = load(tmp_path / "one", RUNNABLE)
    place = learner.act.__globals__
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)

    def once():
        return jb.run(learner, mdp, 100, jax.random.key(0), record=jb.record.linear(2)).regret

    first, alone = run(learner, tmp_path / "run")["regret"].values, once()
    place[name] = {"OFFSET": 2, "helper": lambda actions: actions + 2}[name]
    with pytest.warns(UserWarning, match="'M' is not what it was"):
        second = run(learner, tmp_path / "run")["regret"].values
    text = edited(RUNNABLE, ("OFFSET = 1", "OFFSET = 2"))
    fresh = run(load(tmp_path / "two", text), None)["regret"].values
    assert (first != fresh).all()
    assert second.tobytes() == fresh.tobytes()
    assert (once() != alone).all()


def test_a_process_measures_what_the_metric_is_now(tmp_path):
    text = RUNNABLE + "\n\ndef metric(state, world):\n    return jnp.float32(OFFSET)\n"
    learner = load(tmp_path, text)
    metric = learner.act.__globals__["metric"]
    values = []
    for offset in (1, 2):
        learner.act.__globals__["OFFSET"] = offset
        values.append(run(learner, None, metrics={"mine": metric})["mine"].values.max())
    assert values == [1, 2]
