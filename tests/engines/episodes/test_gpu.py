"""The choices of a GPU, forced on a CPU, give the same numbers; lowered for CUDA, episodes are straight-line code."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from lanes_by_hand import stack

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.errors import LearnerError
from jaxbandit.testing import run_lanes
from jaxbandit.xla import platforms
from jaxbandit.xla.compat import x64

VALUES = np.random.default_rng(0).random((4, 3)).cumsum(-1) / 3


BANDITS = {"kl-ucb", "thompson"}


def instance(name):
    if name in BANDITS:
        return jb.make_instance("bandit", means=[0.2, 0.5, 0.7])
    chances = np.full((4, 3), 1 / 3)
    return jb.make_instance("prophet", values=VALUES, probabilities=chances, capacity=2)


SHORT = {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}
PARAMETERS = {
    "expref": SHORT,
    "ordered-expref": SHORT,
    "prophet-optimism": {"values": VALUES},
}
NAMES = (
    "ucbvi", "policy-gradient", "aggregate-po", "expref", "ordered-expref", "prophet-optimism", "psrl", "trajectory-ts",
    "ucbvi-doubling", "thompson", "kl-ucb",
)  # fmt: skip
"""One for each mechanism that asks for the platform: kernels, block forms, planning; the others do not ask."""


@pytest.fixture
def small_gpu(monkeypatch):
    """The choices of a GPU in a tile that a test can afford."""
    found = replace(platforms.GPU, lanes=8, chunk=64)
    monkeypatch.setitem(platforms.KNOWN, "gpu", found)
    return found


def made(name):
    return jb.make_learner(name, **PARAMETERS.get(name, {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_choices_of_a_gpu_give_the_same_numbers(name, small_gpu):
    """Integers are equal, and so are final policies; regrets to 1e-6."""
    keys = jax.random.split(jax.random.key(5), (1, 10))
    points = np.arange(1, 97)
    cpu, gpu = (
        run_lanes("episodes", [made(name)], [instance(name)], keys, 96, points, platform=platform)
        for platform in ("cpu", "gpu")
    )
    np.testing.assert_allclose(gpu[0]["regret"], cpu[0]["regret"], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(gpu[0]["final_policy"], cpu[0]["final_policy"])
    for one, other in zip(jax.tree.leaves(cpu[1]), jax.tree.leaves(gpu[1]), strict=True):
        if np.issubdtype(one.dtype, np.floating):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(other, one)


def gpu_runner(name, num_episodes=96):
    learner = made(name)
    learner = learner._replace(params={n: np.asarray(v)[None] for n, v in learner.params.items()})
    keys = jax.random.split(jax.random.key(0), (1, 8))
    points = np.asarray([num_episodes])
    mdps = stack(instance(name))
    return make_runner("episodes", learner, mdps, keys, num_episodes, points, platform="gpu")


def lowered(name):
    """The StableHLO of the loop over episodes, for CUDA."""
    runner = gpu_runner(name)
    tile = runner.tiles[0]
    with platforms.tracing_for(runner.platform), x64(False):
        _, function, args, _ = runner._program(tile, runner._begin(tile)[1], 0, 0)
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


NAME = r'[\w.]+|"[^"]+"'
"""How the text of a program names a function."""


def called(text):
    """The functions of a program, by name."""
    pieces = re.split(rf"func\.func \w+ @({NAME})", text)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def inside(body, functions):
    """A piece of a program with the functions that it calls, and those that they call, each once."""
    found, waiting = {"": body}, [body]
    while waiting:
        for name in re.findall(rf"call @({NAME})", waiting.pop()):
            if name not in found:
                found[name] = functions[name]
                waiting.append(functions[name])
    return "".join(found.values())


def loop_bodies(text):
    """The bodies of the loops in a piece of a program, those of loops inside among them."""
    found = []
    for start in re.finditer(r"stablehlo\.while\b", text):
        first = last = text.index("} do {", start.end()) + 6
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[last], 0)
            last += 1
        found.append(text[first:last])
    return found


def operations(text, *wanted):
    """How often operations stand in a piece of a program."""
    return sum(len(re.findall(rf"stablehlo\.{one}\b", text)) for one in wanted)


@pytest.mark.parametrize("name", ["ucbvi", "policy-gradient", "q-learning", "uniform"])
def test_an_episode_has_no_branch_and_no_loop(name, small_gpu):
    """The loop over the stretches of a call holds one loop and no branch, and that loop, over episodes, none at all.

    (Learners that do something rarely, such as those of blocks, ask the device for it, by a loop of no turn or one.)
    """
    functions = called(lowered(name))
    bodies = [inside(body, functions) for body in loop_bodies(inside(functions["main"], functions))]
    stretches = [body for body in bodies if operations(body, "while")]
    assert [operations(body, "while") for body in stretches] == [1]
    assert operations(stretches[0], "case", "if") == 0
    (episodes,) = loop_bodies(stretches[0])
    assert operations(inside(episodes, functions), "while", "case", "if") == 0


def test_what_an_episode_has_is_found():
    """A branch in a function that is called by a function that the loop over episodes calls."""

    def one(e, x):
        return jax.jit(lambda x: jax.lax.cond(x[0] > 0, lambda: x, lambda: -x))(x)

    def stretch(j, x):
        return jax.lax.fori_loop(0, 32, one, x)

    text = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, stretch, x)).lower(np.ones(2), 3).as_text()
    functions = called(text)
    bodies = [inside(body, functions) for body in loop_bodies(inside(functions["main"], functions))]
    assert max(operations(body, "case", "if") for body in bodies) == 1
    assert sorted(operations(body, "while") for body in bodies) == [0, 1]


def test_sums_on_the_device_are_those_of_the_host_bit_for_bit(small_gpu, monkeypatch):
    """Rows are taken out in several pieces; calls end inside and at the end of a group of terms."""
    keys = jax.random.split(jax.random.key(6), (1, 10))
    points = np.asarray([*range(1, 40), 63, 64, 65, 150, 200])
    found = []
    for where in (True, False):
        monkeypatch.setitem(platforms.KNOWN, "gpu", replace(small_gpu, sums_on_device=where))
        run = run_lanes(
            "episodes", [made("ucbvi")], [instance("ucbvi")], keys, 200, points, platform="gpu"
        )
        found.append(run[0]["regret"])
    assert found[0].tobytes() == found[1].tobytes()


def test_a_state_is_handed_over_and_not_held_twice(small_gpu):
    runner = gpu_runner("ucbvi", 300)
    carry = runner.step(runner.start())
    held = carry["tiles"][0]["state"]._replace(values=None)  # V is not read again, but made anew
    after = runner.step(carry)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(held))
    runner.result(after)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(after["tiles"][0]["state"]))


def test_a_wrong_policy_is_found_though_the_state_of_then_is_gone(small_gpu):
    """Actions run over after 150 episodes, in the third call."""

    def act(state, key, constants):
        return jax.numpy.full((4, 3), state // 50, jax.numpy.int32)

    learner = jb.Learner(
        init=lambda problem, constants, key: jax.numpy.int32(0),
        act=act,
        update=lambda state, policy, feedback, constants: state + 1,
        constants=lambda problem, params: (),
        feedback="bandit",
        params={},
        name="overflowing",
    )
    keys = jax.random.split(jax.random.key(0), (1, 8))
    with pytest.raises(
        LearnerError, match=r"episode 151, stage 1, level 1: action 3; accepted: 0\.\.2"
    ):
        run_lanes("episodes", [learner], [instance("overflowing")], keys, 300, platform="gpu")
