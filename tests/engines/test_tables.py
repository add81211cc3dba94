"""Exact tables of one instance: those of planning in float64, kept by the bytes of its arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import tables
from jaxbandit.xla.compat import x64


def drawn(kind="random-general", seed=0):
    return jb.make_instance(kind, key=jax.random.key(seed), horizon=4, width=3, num_actions=3)


@pytest.mark.parametrize("kind", ["random-general", "random-ordered"])
def test_tables_are_those_of_planning(kind):
    mdp = drawn(kind)
    gap, transition = tables.exact_tables(mdp)
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(tables.normalised_prob(mdp)),
            reward=jnp.asarray(np.asarray(mdp.reward, np.float64)),
        )
        np.testing.assert_allclose(gap, jb.gaps(exact), atol=1e-15)
        np.testing.assert_allclose(transition, jb.transition_kernel(exact), atol=1e-15)
        value, policy = jb.optimal(exact)
        assert tables.optimal_value(mdp) == pytest.approx(float(value), abs=1e-15)
        np.testing.assert_array_equal(tables.optimal_policy(mdp), policy)
    assert np.take_along_axis(gap, tables.optimal_policy(mdp)[..., None], -1).max() == 0


def test_probabilities_sum_to_one():
    mdp = drawn()
    scaled = mdp._replace(prob=np.asarray(mdp.prob) * np.float32(1 + 1e-5))
    np.testing.assert_allclose(tables.normalised_prob(scaled).sum(-1), 1, rtol=1e-15)
    np.testing.assert_allclose(tables.exact_tables(scaled)[1].sum(-1), 1, rtol=1e-14)


def test_equal_instances_share_the_work_and_others_do_not(monkeypatch):
    """And only so many are kept."""
    monkeypatch.setattr(tables, "KEPT", 2)
    calls = []
    count = tables.once_per_instance(lambda mdp: calls.append(1) or len(calls))
    one, other = drawn(), drawn(seed=1)
    copied = jax.tree.map(np.array, one)
    assert [count(mdp) for mdp in (one, copied, other, one, other)] == [1, 1, 2, 1, 2]
    assert count(one._replace(start=np.int32(2))) == 3
    assert count(one) == 4


def test_shared_tables_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        tables.exact_tables(drawn())[0][0] = 1
