"""Constants are evaluated on the host, exactly, and placed in an engine's precision or refused."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import make_constants
from jaxbandit.xla.compat import x64

SIZES = {"horizon": 15, "width": 2, "num_actions": 5}


def episodes_per_arm(num_episodes, phase):
    """ceil(12 ln T 4^r) in exact arithmetic: ln T to 60 digits, by the series of artanh."""
    x = Fraction(num_episodes)
    halvings = 0
    while x > 2:
        x, halvings = x / 2, halvings + 1

    def log(value):
        y = (value - 1) / (value + 1)
        y = Fraction(round(y * 10**70), 10**70)
        total, power = Fraction(0), y
        for n in range(1, 300, 2):
            total += power / n
            power = Fraction(round(power * y * y * 10**70), 10**70)
        return 2 * total

    return math.ceil(12 * (log(x) + halvings * log(Fraction(2))) * 4**phase)


@pytest.mark.parametrize("num_episodes", [2_000_000, 57_489_202, 2**31 - 2])
def test_schedule_on_the_episode_engine_is_exact(num_episodes):
    """Whole numbers beyond 2^24 that float32 would round; the reference is exact arithmetic."""
    learner = jb.make_learner("expref")
    problem = jb.Problem(**SIZES, num_episodes=num_episodes)
    found = make_constants(learner, problem, learner.params)
    assert found.episodes_per_arm.dtype == np.int32
    assert found.epsilons.dtype == np.float32
    count = int((found.epsilons > 0).sum())
    exact = [episodes_per_arm(num_episodes, r) for r in range(count)]
    assert found.episodes_per_arm[:count].tolist() == exact
    assert int(found.forever) == num_episodes + 1
    block = jax.jit(learner.blocks.next_block)(
        learner.blocks.init(problem, None, None)._replace(phase=jnp.int32(count - 1)),
        jax.tree.map(jnp.asarray, found),
    )
    assert block.episodes.tolist() == [exact[-1]] * 10
    last = jax.jit(learner.blocks.next_block)(
        learner.blocks.init(problem, None, None)._replace(phase=jnp.int32(count)),
        jax.tree.map(jnp.asarray, found),
    )
    assert last.episodes.tolist() == [num_episodes + 1] + [0] * 9


def test_an_arm_of_57_489_202_episodes_is_that_long():
    """A number that float32 does not hold: the adapter counts the arm down from it."""
    scale = (57_489_201.5) / (12 * math.log(2_000_000_000))
    learner = jb.make_learner("expref", episodes_scale=scale, num_phases=1)
    problem = jb.Problem(**SIZES, num_episodes=2_000_000_000)
    given = jax.tree.map(jnp.asarray, make_constants(learner, problem, learner.params))
    state = learner.init(problem, given, None)
    assert int(state.left) == 57_489_202
    assert int(np.float32(57_489_202)) != 57_489_202


def test_long_runs_on_the_block_engine():
    learner = jb.make_learner("expref")
    with x64():
        found = make_constants(learner, jb.Problem(**SIZES, num_episodes=2**53), learner.params)
    count = int((found.epsilons > 0).sum())
    assert found.episodes_per_arm.dtype == np.int64
    # Twelve digits of ln T are enough for a ceil of up to eleven.
    for r in range(min(count, 12)):
        assert int(found.episodes_per_arm[r]) == episodes_per_arm(2**53, r)
    assert int(found.forever) == 2**53 + 1


def test_phase_ends_are_exact_beyond_float32():
    """An arm that ends at an odd episode above 2^24 is reported so, on the block engine and by the
    adapter."""
    learner = jb.make_learner("expref", epsilons=[1.0], episodes_scale=1e6)
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    keys = jax.random.split(jax.random.key(0), (1, 1))
    T = 2_000_000_000
    results, state = jb.testing.run_lanes("blocks", [learner], [mdp], keys, T)
    n = math.ceil(12e6 * math.log(T))
    assert results["phase_end"][0, 0, 0] == 4 * n
    assert state.phase_end[0, 0, 0] == 4 * n
    with x64():
        seen = learner.blocks.report(
            learner.blocks.init(jb.Problem(2, 1, 2, T), None, None)._replace(
                phase_end=jnp.full(32, 2**30 + 1, jnp.int32)
            )
        )
    assert float(seen["phase_end"][0]) == 2**30 + 1


def _with(value):
    return jb.make_learner("uniform")._replace(constants=lambda problem, params: {"x": value})


def test_numbers_that_have_no_place_are_refused():
    problem = jb.Problem(**SIZES, num_episodes=10)
    for value, message in [
        (2**31, r"learner 'uniform': constants\['x'\]: 2147483648; accepted: numbers that int32"),
        (np.asarray([1, 2**40]), r"constants\['x'\]: 1099511627776; accepted: numbers that int32"),
        (1e300, r"constants\['x'\]: 1e\+300; accepted: numbers that float32 holds"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_constants(_with(value), problem, {})
        with x64():
            np.testing.assert_array_equal(make_constants(_with(value), problem, {})["x"], value)
    kept = make_constants(_with(np.asarray([np.inf, np.nan])), problem, {})["x"]
    np.testing.assert_array_equal(kept, np.float32([np.inf, np.nan]))
    assert make_constants(_with(True), problem, {})["x"].dtype == np.bool_


def test_an_episode_engine_refuses_the_one_number_that_does_not_fit():
    learner = jb.make_learner("expref")
    problem = jb.Problem(**SIZES, num_episodes=2**31 - 1)
    with pytest.raises(ValueError, match=r"learner 'expref': constants.forever: 2147483648"):
        make_constants(learner, problem, learner.params)


def test_constants_are_evaluated_in_float64():
    seen = {}

    def constants(problem, params):
        seen.update(episodes=problem.num_episodes, dtype=jnp.zeros(()).dtype)
        return jnp.log(jnp.asarray(problem.num_episodes, float))

    learner = jb.make_learner("uniform")._replace(constants=constants)
    value = make_constants(learner, jb.Problem(**SIZES, num_episodes=10**15), {})
    assert seen == {"episodes": 10**15, "dtype": np.float64}
    assert value == np.float32(math.log(10**15))


def test_more_phases_than_there_is_room_for_are_refused():
    learner = jb.make_learner("expref", ratio=0.99, last_epsilon=0.1)
    problem = jb.Problem(**SIZES, num_episodes=10**6)
    with pytest.raises(ValueError, match=r"ratio: 0.99, more than 32 phases at T = 1000000"):
        make_constants(learner, problem, learner.params)
    fewer = jb.make_learner("expref", ratio=0.99, last_epsilon=0.1, num_phases=32)
    assert (make_constants(fewer, problem, fewer.params).epsilons > 0).all()


@pytest.mark.parametrize(
    ("value", "seen"),
    [("x", "'x'"), (10**30, "1000000"), (np.array([None]), "array"), (jax.random.key(0), "a key")],
)
def test_what_is_no_number_is_refused(value, seen):
    learner = jb.make_learner("uniform")._replace(constants=lambda problem, params: {"c": value})
    with pytest.raises(
        ValueError, match=rf"learner 'uniform': constants\['c'\]: {seen}.*; accepted: a tree"
    ):
        make_constants(learner, jb.Problem(**SIZES, num_episodes=10), {})


def test_one_episode():
    for name in ("expref", "ordered-expref"):
        learner = jb.make_learner(name)
        mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
        keys = jax.random.split(jax.random.key(0), (1, 1))
        for engine in ("episodes", "blocks"):
            results, _ = jb.testing.run_lanes(engine, [learner], [mdp], keys, 1)
            assert np.isfinite(results["regret"]).all()


def test_without_constants_they_are_the_parameters():
    params = {"share": 0.1, "table": np.arange(3)}
    learner = jb.Learner(lambda *_: 0, lambda *_: 0, lambda *_: 0, params=params)
    found = make_constants(learner, jb.Problem(**SIZES, num_episodes=10), params)
    assert {name: leaf.dtype.name for name, leaf in found.items()} == {
        "share": "float32",
        "table": "int32",
    }
    with x64():
        found = make_constants(learner, jb.Problem(**SIZES, num_episodes=10), params)
    assert (found["share"].dtype, found["share"]) == (np.float64, 0.1)
