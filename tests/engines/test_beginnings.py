"""How runs begin: constants exact and shared, first states of every lane, 32 bits refused or rounded once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines.beginnings import beginning, optimal_policies, to_32_bits
from jaxbandit.learner import Learner, normalised
from jaxbandit.planning import gaps
from jaxbandit.xla.compat import x64

MDPS = jax.tree.map(
    lambda *x: np.stack([np.asarray(leaf) for leaf in x]),
    *(
        jb.make_instance(
            "prophet-random", key=jax.random.key(j), horizon=3, capacity=2, num_values=3
        )
        for j in (0, 1)
    ),
)


def test_constants_are_made_once_for_equal_lanes_and_init_gets_them():
    calls = []

    def constants(problem, params):
        calls.append(problem)
        return {"c": params["scale"] * problem.num_episodes}

    def init(problem, params):
        return 2 * problem.constants["c"]

    rules = normalised(Learner(init, None, None, constants=constants, name="toy").rules)
    params = {"scale": np.float64([2, 2])}
    with x64():
        function, args = beginning(rules, (), MDPS, params, 2**60)
        states = function(*args)
    assert len(calls) == 1
    assert type(calls[0].num_episodes) is int
    np.testing.assert_array_equal(args[-1]["c"], np.float64([2**61, 2**61]))
    np.testing.assert_array_equal(states, np.float64([2**62, 2**62]))


def test_only_what_a_learner_needs_is_handed_over():
    seen = {}

    def init(problem, params):
        seen.update(rank=problem.rank, best=problem.optimal_policy)
        return jnp.zeros(())

    rules = normalised(Learner(init, None, None, name="toy").rules)
    with x64():
        for needs in ((), ("rank",), ("optimal_policy",)):
            function, args = beginning(rules, needs, MDPS, {}, 10)
            function(*args)
            assert (seen["rank"] is not None, seen["best"] is not None) == (
                "rank" in needs,
                "optimal_policy" in needs,
            )


def test_optimal_policies_have_no_gap():
    policies = optimal_policies(MDPS)
    for lane in range(2):
        gap = np.asarray(gaps(jax.tree.map(lambda x, lane=lane: x[lane], MDPS)))
        chosen = np.take_along_axis(gap, policies[lane][..., None], axis=-1)
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
