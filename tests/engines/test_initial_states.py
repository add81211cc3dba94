"""How runs begin: constants exact and shared, first states of every lane, 32 bits refused or rounded once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.runner import to_32_bits
from jaxbandit.learner import Learner
from jaxbandit.planning import gaps
from jaxbandit.xla.compat import x64

KEYS = np.zeros((2, 2), np.uint32)
MDPS = jax.tree.map(
    lambda *x: np.stack([np.asarray(leaf) for leaf in x]),
    *(
        jb.make_instance(
            "prophet-random", key=jax.random.key(j), horizon=3, capacity=2, num_values=3
        )
        for j in (0, 1)
    ),
)


def first_states(init, constants=None, requires=(), **params):
    """The states of two lanes, one for each MDP, and their constants."""
    learner = Learner(
        init=init, act=lambda *_: None, update=lambda state, *_: state, constants=constants,
        requires=requires, params={name: np.float64([x, x]) for name, x in params.items()}, name="toy",
    )  # fmt: skip
    runner = make_runner("episodes", learner, MDPS, KEYS[:, None], 2**30, np.asarray([2**30]))
    with x64():
        function, args = runner.first_lanes(2)
        return function(*args), args[-1]


def test_constants_are_made_once_for_equal_lanes_and_init_gets_them():
    calls = []

    def constants(problem, params):
        calls.append(problem)
        return {"c": params["scale"] * problem.num_episodes}

    states, found = first_states(
        lambda problem, constants, key: 2 * constants["c"], constants, scale=2
    )
    assert len(calls) == 2  # of one lane for its size, and of two
    assert type(calls[0].num_episodes) is int
    np.testing.assert_array_equal(found["c"], np.float64([2**31, 2**31]))
    np.testing.assert_array_equal(states, np.float64([2**32, 2**32]))


@pytest.mark.parametrize("requires", [(), ("rank",), ("optimal_policy",)])
def test_only_what_a_learner_needs_is_handed_over(requires):
    """To `constants`, for each MDP, and to `init`."""
    seen, exact = [], []

    def init(problem, constants, key):
        seen.append(problem)
        return jnp.zeros(())

    first_states(init, lambda problem, params: exact.append(problem) or (), requires)
    for each in seen + exact:
        assert (each.rank is not None, each.optimal_policy is not None) == (
            "rank" in requires,
            "optimal_policy" in requires,
        )
    if "optimal_policy" in requires:
        for lane in range(2):
            gap = np.asarray(gaps(jax.tree.map(lambda x, lane=lane: x[lane], MDPS)))
            chosen = np.take_along_axis(gap, exact[lane - 2].optimal_policy[..., None], axis=-1)
            assert np.abs(chosen).max() < 1e-6  # planning is float32, of values at most 1


def test_numbers_that_do_not_fit_are_refused():
    small = to_32_bits("toy", {"a": np.float64([0.1]), "b": np.int64([2**31 - 1])})
    assert (small["a"].dtype, small["b"].dtype) == (np.float32, np.int32)
    with pytest.raises(ValueError, match="learner 'toy': init gives the whole number 2147483648"):
        to_32_bits("toy", np.int64([2**31]))
    with pytest.raises(
        ValueError, match=r"learner 'toy': init gives 1e\+300; accepted on the epis"
    ):
        to_32_bits("toy", np.float64([1.0, 1e300]))
    assert np.isinf(to_32_bits("toy", np.float64([np.inf]))).all()


def test_every_lane_has_a_key_of_its_own_on_both_engines():
    """``init`` gets fold_in(key, 3) of its lane's key, whatever the engine, the chunk and the neighbours."""

    def init(problem, constants, key):
        return jax.random.bits(key, (2,), jnp.uint32)

    def next_block(state, constants):
        policy = jnp.full((2, 2, 2), 0.5)
        return jb.Blocks(policy, jnp.int32(0), policy[:1], jnp.full(1, 2**30))

    form = jb.BlockForm(init, next_block, lambda state, *_: state)
    learner = jb.from_blocks(form, name="drawn", params={})
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    keys = jax.random.split(jax.random.key(0), (1, 3))
    wanted = jax.vmap(lambda key: init(None, None, jax.random.fold_in(key, 3)))(keys[0])
    _, blocks = jb.testing.run_lanes("blocks", [learner], [mdp], keys, 5)
    np.testing.assert_array_equal(blocks[0], wanted)
    one = Learner(init, lambda *_: jnp.zeros((2, 2), jnp.int32), lambda state, *_: state)
    _, episodes = jb.testing.run_lanes("episodes", [one], [mdp], keys[:, 1:], 5)
    np.testing.assert_array_equal(episodes[0], wanted[1:])
