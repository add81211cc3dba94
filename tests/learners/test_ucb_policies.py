"""UCB1 over policies: every policy is an arm, and the arms are played as UCB1 says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.ucb_policies import ucb_policies


def test_it_plays_as_ucb1():
    """27 policies on 3 states of 1 level, 400 episodes of made-up totals: the same policies as a
    loop over a table of means; each of the first 27 is new."""
    learner = ucb_policies(bonus_scale=0.7)
    problem = Problem(3, 1, 3, 400)
    state = learner.init(problem, None, None)
    given = make_constants(learner, problem, learner.params)
    update = jax.jit(learner.update)
    random = np.random.default_rng(0)
    means = random.random(27)
    seen: list[tuple] = []
    totals: dict[tuple, list[float]] = {}
    for t in range(400):
        policy = tuple(np.asarray(learner.act(state, None, given))[:, 1].tolist())
        if t < 27:
            assert policy not in totals
        else:
            bounds = {
                p: np.mean(x) + 0.7 * np.sqrt(2 * np.log(t) / len(x)) for p, x in totals.items()
            }
            assert bounds[policy] >= max(bounds.values()) - 1e-5
        number = policy[0] + 3 * policy[1] + 9 * policy[2]
        total = np.float32(random.random() < means[number])
        totals.setdefault(policy, []).append(float(total))
        seen.append(policy)
        state = update(state, None, BanditFeedback(jnp.asarray(total)), given)
    assert len(set(seen)) == 27
    assert int(state.played.sum()) == 400


def test_states_that_nobody_reaches_are_left_out():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=2)
    reached = np.asarray(jb.visitation(mdp, jnp.full((3, 3, 2), 0.5))) > 0
    learner = ucb_policies(reachable=reached)
    state = learner.init(Problem(3, 2, 2, 100.0), None, None)
    assert state.played.size == 2 ** reached[:, 1:].sum() == 2**5
    jb.testing.check_learner(learner, mdp)


def test_too_many_policies_are_refused():
    learner = ucb_policies()
    with pytest.raises(ValueError, match=r"5\^30 = 931,322,574,615,478,515,625 policies"):
        make_constants(learner, Problem(15, 2, 5, 100), learner.params)
    narrow = ucb_policies(reachable=[[False, True]])
    with pytest.raises(ValueError, match=r"reachable: \[1, 2\]; accepted: \[15, 3\] in this MDP"):
        make_constants(narrow, Problem(15, 2, 5, 100), narrow.params)
    with pytest.raises(ValueError, match=r"reachable: int64 \[1\]; accepted: bool \[H, k\+1\]"):
        ucb_policies(reachable=[1])
    with pytest.raises(ValueError, match="bonus_scale: -1"):
        ucb_policies(bonus_scale=-1)
