"""Every kernel against the learner's own functions: integers are equal, reals to rounding; and it is found by them."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.kernels import KERNELS, find_kernel, kernel_or_own, ucbvi
from jaxbandit.kernels.lanes import vmapped
from jaxbandit.learner import Problem, make_constants
from jaxbandit.xla.platforms import GPU, tracing_for

LANES, EPISODES = 3, 12
SIZES = [(3, 2, 2), (1, 1, 1), (4, 5, 3)]
"""H, k, A: with few levels and with more; nothing to choose."""
BANDITS = ("ucb1", "moss", "kl-ucb", "imed", "thompson")
"""Which take K arms and nothing else."""
CASES = [
    (f"{learner.name} {platform} {number}", learner, platform)
    for number, (learner, platform, _) in enumerate(KERNELS)
]


def episode(random, sizes, policy):
    """Any path; the actions are the policy's."""
    H, k, A = sizes
    levels = random.integers(0, k + 1, (H, LANES)).astype(np.int32)
    actions = random.integers(0, A, levels.shape).astype(np.int32)
    if jnp.issubdtype(policy.dtype, jnp.integer):
        stage, lane = np.ogrid[:H, :LANES]
        actions = np.asarray(policy)[stage, levels, lane]
    rewards = (random.random(levels.shape) / H).astype(np.float32)
    following = random.integers(0, k + 1, levels.shape).astype(np.int32)
    return Trajectory(*map(jnp.asarray, (levels, actions, rewards, following)))


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    ("learner", "platform"), [case[1:] for case in CASES], ids=[x[0] for x in CASES]
)
def test_a_kernel_is_its_learner(learner, platform, sizes):
    """A call of some episodes, and the same ones in two calls: those give the same bits."""
    if learner.name in BANDITS:
        sizes = (1, 1, sizes[2])
    problem = Problem(*sizes, num_episodes=EPISODES)
    constants = make_constants(learner, problem, {n: 0.3 * v for n, v in learner.params.items()})
    first = learner.init(problem, constants, jax.random.key(0))
    first, constants = jax.tree.map(
        lambda x: jnp.broadcast_to(jnp.asarray(x, None), (LANES, *np.shape(x))), (first, constants)
    )
    keys = jax.random.split(jax.random.key(1), (EPISODES, LANES))
    with tracing_for(GPU) if platform == "gpu" else contextlib.nullcontext():
        kernel = find_kernel(learner, sizes, platform)
        assert kernel is not None
        both = [
            jax.jit(x)
            for x in (_step(learner, kernel, platform), _step(learner, vmapped(learner), "cpu"))
        ]
        enter, leave = (jax.jit(getattr(kernel, name)) for name in ("enter", "leave"))
        inner, plain, random = enter(first, constants), first, np.random.default_rng(0)
        cut = inner
        act = jax.jit(kernel.act)
        for t in range(EPISODES):
            policy = act(inner, keys[t], constants)
            seen = observe(
                learner.feedback, episode(random, sizes, policy), jnp.zeros(LANES, jnp.uint32)
            )
            inner, played = both[0](inner, keys[t], seen, constants, True)
            plain, expected = both[1](plain, keys[t], seen, constants, True)
            np.testing.assert_allclose(played, expected, rtol=1e-5, atol=1e-6)
            cut = both[0](cut, keys[t], seen, constants, True)[0]
            if t % 5 == 0:
                cut = enter(leave(cut, constants), constants)
        if platform == "gpu":  # an episode that does not count
            inner = both[0](inner, keys[0], seen, constants, False)[0]
        found, again = leave(inner, constants), leave(cut, constants)
    jax.tree.map(np.testing.assert_array_equal, found, again)
    assert jax.tree.structure(found) == jax.tree.structure(plain)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
        if jnp.issubdtype(one.dtype, jnp.floating):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(one, other)


def _step(learner, kernel, platform):
    def step(state, keys, seen, constants, live):
        policy = kernel.act(state, keys, constants)
        live = live if platform == "gpu" else None
        return kernel.update(state, policy, seen, constants, live), policy

    return step


def test_another_function_has_no_kernel():
    learner = jb.make_learner("ucbvi")
    for name in ("init", "act", "update", "constants"):
        function = getattr(learner, name)
        mine = learner._replace(
            **{name: lambda *arguments, function=function: function(*arguments)}
        )
        assert find_kernel(mine, (3, 2, 2), "cpu") is None
    assert find_kernel(jb.make_learner("ucbvi", stationary=True), (3, 2, 2), "cpu") is None
    assert find_kernel(jb.make_learner("ucbvi", bonus_scale=0.1, monotone=True), (3, 2, 2), "cpu")


def test_entries_of_wide_tables_are_those_of_narrow_ones(monkeypatch):
    """Looked up and put back one by one, or selected, with masked stores or without: the same bits; entry -1 changes nothing."""
    random = np.random.default_rng(0)
    table = jnp.asarray(random.normal(size=(3, 5, 8)).astype(np.float32))
    entry = jnp.asarray([0, 4, -1, 2, 2, -1, 1, 3], jnp.int32)
    after = jnp.asarray(random.normal(size=(3, 8)).astype(np.float32))
    ways = []
    for limit, masks in ((100, False), (1, False), (1, True)):
        monkeypatch.setattr(ucbvi, "LOOKED_UP_FROM", limit)
        monkeypatch.setattr(ucbvi, "masks_stores", lambda masks=masks: masks)
        before = ucbvi.read(table, entry)
        ways.append((before, ucbvi.write(table, entry, jnp.where(entry < 0, 0, after), before)))
    for way in ways[1:]:
        jax.tree.map(np.testing.assert_array_equal, ways[0], way)
    np.testing.assert_array_equal(ways[0][1][:, :, 2], table[:, :, 2])
    np.testing.assert_array_equal(ways[0][1][:, 4, 1], after[:, 1])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ucbvi", {}),
        ("ucbvi", {"bonus": "bernstein", "monotone": True}),
        ("ucbvi-doubling", {"stationary": True}),
    ],
)
def test_a_stretch_in_one_kernel_gives_the_same_numbers(name, options):
    """Many levels, one lane at a time: the learner itself, and a copy of it that no kernel is known for."""
    sizes = {"horizon": 4, "width": 24, "num_actions": 2, "num_outcomes": 3}
    mdp = jb.make_instance("random-general", key=jax.random.key(0), **sizes)
    learner = jb.make_learner(name, bonus_scale=0.1, **options)
    assert kernel_or_own(learner, (4, 24, 2), "cpu", 1).one_kernel

    def act(state, key, constants):
        return learner.act(state, key, constants)

    copy = learner._replace(act=act)
    dataset = jb.sweep({"one": learner, "many": copy}, {"MDP": mdp}, num_episodes=70, num_seeds=2)
    one, many = dataset["regret"].values[:, 0]
    np.testing.assert_allclose(one, many, rtol=1e-6)
