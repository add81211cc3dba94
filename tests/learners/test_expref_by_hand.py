"""Every block, Phi, set N and alpha-hat of two phases of ExpRef and OrderedExpRef, calculated by
hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recording import played

import jaxbandit as jb
from jaxbandit.learner import make_constants
from jaxbandit.learners import Problem
from jaxbandit.xla.compat import x64

# Two stages, two levels, start at level 2, all rewards and moves deterministic:
#   stage 1: action 0 pays 3/8 and moves a level down, action 1 pays nothing and stays (at level 1:
# 0 pays 1/2);   stage 2: at level 2 the actions pay 1/4 and 1, at level 1 they pay 1/4 and 1/8.
# T = 1000, episodes_scale 1/50: n = ceil(0.24 ln 1000 / eps^2) = ceil(1.658), ceil(6.632),
# ceil(26.53) = 2, 7, 27 (log 10 would give 1, 3, 12, and rounding down 1, 6, 26).
NUM_EPISODES, SCALE = 1000, 0.02
E, A0, A1, M = (0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.25, 0.75)


def deterministic():
    reward = np.zeros((2, 3, 2, 1), np.float32)
    reward[0, 2, :, 0], reward[0, 1, :, 0] = [0.375, 0], [0.5, 0]
    reward[1, 2, :, 0], reward[1, 1, :, 0] = [0.25, 1], [0.25, 0.125]
    next_level = np.zeros((2, 3, 2, 1), np.int32)
    next_level[:, 2, :, 0], next_level[:, 1, :, 0] = [1, 2], [0, 1]
    rank = np.broadcast_to(np.arange(2, dtype=np.int32), (2, 3, 2))
    return jb.MDP(np.ones_like(reward), reward, next_level, rank, np.int32(2))


# Every arm in order: rows of stage 1 (levels 2, 1), rows of stage 2 (levels 2, 1), episodes, Phi.
# After each stage: alpha-hat at levels (2, 1) and the sets N at levels (2, 1).
#
# ExpRef, threshold_scale 1/16: C eps = 1/16 at stage 2 and 1/2 at stage 1 in phase 1, half of that
# in phase 2. At stage 2 the levels 2 and 1 are reached with probability 1/2 each; exploring there
# is worth 5/8 and 3/16.
EXPREF = [
    ([((E, E), (A0, E), 2, 0.40625),       # 1/2 * 1/4 + 1/2 * (3/8 + 3/16)
      ((E, E), (A1, E), 2, 0.78125),       # 1/2 * 1   + 1/2 * (3/8 + 3/16)
      ((E, E), (E, A0), 2, 0.625),         # 1/2 * 5/8 + 1/2 * (3/8 + 1/4)
      ((E, E), (E, A1), 2, 0.5625)],       # 1/2 * 5/8 + 1/2 * (3/8 + 1/8): exactly C eps below the best, so kept
     (1, 0), ([1], [0, 1])),
    ([((A0, E), (A1, A0), 2, 0.625),       # 3/8 + 1/4
      ((A1, E), (A1, A0), 2, 1.0),         # 0 + 1; 3/8 apart, so both are kept
      ((E, A0), (A1, A0), 2, 0.8125),      # level 1 is not reached: the mean of the two above
      ((E, A1), (A1, A0), 2, 0.8125)],     # a tie, which goes to the first
     (1, 0), ([0, 1], [0, 1])),
    ([((E, E), (A1, E), 7, 0.78125),
      ((E, E), (A1, A0), 7, 0.8125),
      ((E, E), (A1, A1), 7, 0.75)],        # 1/16 apart, more than 1/32
     (1, 0), ([1], [0])),
    ([((A0, E), (A1, A0), 7, 0.625),       # 3/8 apart, more than 1/4
      ((A1, E), (A1, A0), 7, 1.0),
      ((E, A0), (A1, A0), 7, 0.8125),
      ((E, A1), (A1, A0), 7, 0.8125)],
     (1, 0), ([1], [0, 1])),
]  # fmt: skip
EXPREF_THIRD_PHASE = [((A1, E), (A1, A0), 27), ((A1, E), (A1, A0), 27)]

# OrderedExpRef, threshold_scale 1/32: k/(2H) = 1/2, so exploration M plays the maximal action 1
# with probability 3/4. C = 1 and 4 at stage 2 (levels 1, 2), 2e and 16e at stage 1: C eps = 1/32,
# 1/8, 0.1699, 1.359 in phase 1. At stage 2 the levels 2 and 1 are reached with probability 3/4 and
# 1/4; exploring there is worth 13/16 and 5/32.
ORDERED = [
    ([((M, M), (A0, M), 2, 0.3203125),     # 3/4 * 1/4 + 1/4 * (3/8 + 5/32)
      ((M, M), (A1, M), 2, 0.8828125),     # 3/4 * 1   + 1/4 * (3/8 + 5/32)
      ((M, M), (M, A0), 2, 0.765625),      # 3/4 * 13/16 + 1/4 * (3/8 + 1/4)
      ((M, M), (M, A1), 2, 0.734375)],     # 3/4 * 13/16 + 1/4 * (3/8 + 1/8): exactly C eps below the best, so kept
     (1, 0), ([1], [0, 1])),
    ([((A0, M), (A1, A0), 2, 0.625),
      ((A1, M), (A1, A0), 2, 1.0),
      ((M, A0), (A1, A0), 2, 0.90625),     # 1/4 * 5/8 + 3/4 * 1
      ((M, A1), (A1, A0), 2, 0.90625)],
     (1, 0), ([0, 1], [0, 1])),
    ([((M, M), (A1, M), 7, 0.8828125),
      ((M, M), (A1, A0), 7, 0.90625),
      ((M, M), (A1, A1), 7, 0.875)],       # 1/32 apart, more than 1/64
     (1, 0), ([1], [0])),
    ([((A0, M), (A1, A0), 7, 0.625),       # 3/8 apart, less than 16e / 64
      ((A1, M), (A1, A0), 7, 1.0),
      ((M, A0), (A1, A0), 7, 0.90625),
      ((M, A1), (A1, A0), 7, 0.90625)],
     (1, 0), ([0, 1], [0, 1])),
]  # fmt: skip
ORDERED_THIRD_PHASE = [((M, M), (A1, A0), 27), ((M, M), (A1, A0), 27)]

BY_HAND = {
    "expref": (1 / 16, EXPREF, EXPREF_THIRD_PHASE),
    "ordered-expref": (1 / 32, ORDERED, ORDERED_THIRD_PHASE),
}


def by_hand(name):
    scale, script, third = BY_HAND[name]
    learner = jb.make_learner(name, episodes_scale=SCALE, threshold_scale=scale)
    rank = deterministic().rank if learner.requires else None
    return learner, Problem(2, 2, 2, NUM_EPISODES, rank), script, third


def table(*stages):
    """Rows of levels 2 and 1, as [H, k, A] in the order of the levels."""
    return np.asarray([rows[::-1] for rows in stages])


@pytest.mark.parametrize("name", BY_HAND)
def test_every_block_phi_set_and_best_action_of_two_phases(name):
    learner, problem, script, third = by_hand(name)
    form = learner.blocks
    with x64():
        next_block, absorb = jax.jit(form.next_block), jax.jit(form.absorb)
        state = form.init(problem, None, None)
        given = jax.tree.map(jnp.asarray, make_constants(form, problem, learner.params))
        assert given.episodes_per_arm[:3].tolist() == [2, 7, 27]
        for number, (arms, best, kept) in enumerate(script):
            blocks = next_block(state, given)
            stage = 1 - number % 2
            assert int(blocks.stage) == stage
            seen = list(played(blocks))
            assert len(seen) == len(arms)
            totals = np.zeros(4)
            positions = np.flatnonzero(np.asarray(blocks.episodes))
            for (policy, episodes), (first, second, wanted, phi), b in zip(
                seen, arms, positions, strict=True
            ):
                np.testing.assert_array_equal(policy, table(first, second))
                assert episodes == wanted
                totals[b] = episodes * phi
            state = absorb(state, blocks.episodes, totals, given)
            assert np.asarray(state.best)[stage, :0:-1].tolist() == list(best)
            refined = np.asarray(state.refined)[stage, :0:-1]
            assert [np.flatnonzero(row).tolist() for row in refined] == list(kept)
        assert int(state.phase) == 2
        assert np.asarray(state.committed)[:, 1:].tolist() == [[0, 1], [0, 1]]
        assert np.asarray(state.phase_end)[:3].tolist()[:2] == [16, 65]
        assert int(state.phase_end[2]) == -1
        assert np.isnan(form.report(state)["phase_end"][2])
        sizes = [[len(row) for row in kept[::-1]] for _, _, kept in script]
        assert np.asarray(state.active_actions)[:2, :, 1:].tolist() == [sizes[1::-1], sizes[3:1:-1]]
        following = [
            (policy.tolist(), episodes) for policy, episodes in played(next_block(state, given))
        ]
        assert following == [(table(first, second).tolist(), n) for first, second, n in third]


@pytest.mark.parametrize("name", BY_HAND)
def test_the_values_by_hand_are_those_of_the_instance(name):
    mdp = jb.validate(jax.tree.map(jnp.asarray, deterministic()))
    policies, phis = [], []
    for arms, _, _ in BY_HAND[name][1]:
        for first, second, _, phi in arms:
            policies.append(
                np.pad(table(first, second), ((0, 0), (1, 0), (0, 0)), constant_values=0.5)
            )
            phis.append(phi)
    values = jax.vmap(jb.evaluate, (None, 0))(mdp, jnp.asarray(np.asarray(policies), jnp.float32))
    np.testing.assert_allclose(values, phis, atol=1e-6)
