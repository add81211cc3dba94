"""Hardness against brute force over all policies, on a tiny instance of every family."""

import itertools

import numpy as np
import pytest
from families import PARAMETERS, tiny

import jaxbandit as jb
from jaxbandit.inspect.hardness import largest_visitation

SMALL = sorted({*PARAMETERS} - {"knapsack-random", "hard-ordered"})
"""At most six states with a choice."""


def visits_by_hand(mdp, choose):
    """Visits [H, k+1] of a policy choose(stage, level) -> action, outcome by outcome."""
    prob, following = np.asarray(mdp.prob, np.float64), np.asarray(mdp.next_level)
    here = {int(mdp.start): 1.0}
    rows = []
    for i in range(mdp.horizon):
        rows.append([here.get(level, 0.0) for level in range(mdp.width + 1)])
        after = {}
        for level, share in here.items():
            a = choose(i, level)
            for m in range(mdp.num_outcomes):
                to = int(following[i, level, a, m])
                after[to] = after.get(to, 0.0) + share * prob[i, level, a, m]
        here = after
    return np.array(rows)


def every_policy(mdp):
    states = [(i, level) for i in range(mdp.horizon) for level in range(1, mdp.width + 1)]
    for actions in itertools.product(range(mdp.num_actions), repeat=len(states)):
        table = dict(zip(states, actions, strict=True))
        yield lambda i, level, table=table: table.get((i, level), 0)


@pytest.mark.parametrize("name", SMALL)
def test_largest_visits_are_those_of_some_policy_and_of_no_other(name):
    mdp = tiny(name)
    brute = np.max([visits_by_hand(mdp, choose) for choose in every_policy(mdp)], axis=0)
    np.testing.assert_allclose(np.asarray(largest_visitation(mdp))[:, 1:], brute[:, 1:], atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_counts_and_gaps_by_brute_force(name):
    mdp = tiny(name)
    found = jb.hardness(mdp)
    visits = [visits_by_hand(mdp, choose) for choose in every_policy(mdp)]
    reachable = (np.max(visits, axis=0) > 0)[:, 1:]
    assert found.num_states == reachable.sum()
    assert found.num_policies == mdp.num_actions ** int(reachable.sum())
    lost = np.asarray(jb.gaps(mdp), np.float64)[:, 1:][reachable]
    assert found.smallest_gap == pytest.approx(lost[lost > 1e-6].min(), rel=1e-3)
    assert found.inverse_gaps == pytest.approx((1 / lost[lost > 1e-6]).sum(), rel=1e-3)
    assert found.optimal_value == pytest.approx(float(jb.optimal(mdp)[0]), abs=1e-6)


@pytest.mark.parametrize("name", PARAMETERS)
def test_ratios_obey_the_lemmas(name):
    mdp = tiny(name)
    found = jb.hardness(mdp)
    assert 1 - 1e-9 <= found.visitation_ratio <= found.visitation_bound * (1 + 1e-9)
    if mdp.rank is None:
        assert np.isnan(found.ordered_visitation_ratio)
    else:
        assert found.ordered_visitation_ratio >= 1 - 1e-9
    assert 1 <= found.num_optimal_policies <= found.num_policies


def test_the_papers_family_has_one_optimal_policy_in_many():
    # M^theta: the H actions at level 1 must follow theta; those of level 2, reached by a mistake, are free.
    mdp = jb.make_instance("hard-general", theta=[1, 0, 1, 1], num_actions=2, gap=0.1)
    found = jb.hardness(mdp)
    assert found.num_policies == 2**found.num_states
    assert found.num_optimal_policies == 2 ** (found.num_states - 4)
    assert "num_policies" in str(found)


def test_many_policies_are_counted_exactly():
    mdp = jb.make_instance("prophet-uniform", horizon=7, capacity=4, num_values=9)
    found = jb.hardness(mdp)
    assert found.num_states == 7 * 4 - 6  # level k - j needs j stages before it
    assert found.num_policies == 9**22 > 2**64


def test_stacks_are_refused():
    import jax

    many = jb.family(
        "prophet-random", count=2, key=jax.random.key(0), horizon=2, capacity=1, num_values=2
    )
    with pytest.raises(ValueError, match="mdp: 2 stacked; accepted: a single MDP"):
        jb.hardness(many)
