"""UCB-VI (Azar, Osband and Munos 2017), stage-dependent, under semi-bandit feedback.

After every episode the learner plans in the empirical model, optimistically: for i = H..1 and l =
1..k,

    Q_{l,i}(a) = min(1, r_{l,i}(a) + sum_s p_i(s | l, a) V_{s,i+1} + b_{l,i}(a)),  V_{l,i} = max_a
    Q_{l,i}(a),

with r and p the empirical means over the N = N_{l,i}(a) visits, Q = 1 where N = 0, and V = 0 at
level 0 and after stage H. With T episodes, delta = 1/T and L = ln(5 k A H T / delta), the bonus is

    "hoeffding":  b = c sqrt(L / N)                                                       (UCBVI-CH)
    "bernstein":  b = c (sqrt(8 L Var_p(V) / N) + sqrt(8 L r (1 - r) / N) + 14 L / (3 N)  (UCBVI-BF)
                         + sqrt(8 / N  sum_s p_i(s | l, a) min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1)))

where c is ``bonus_scale`` and N'_{i+1}(s) the number of visits to level s of stage i+1. The
Bernstein bonus is that of the paper's Algorithm 4 with values in [0, 1] instead of [0, H]; rewards
are unknown here, so their deviation is added, and r (1 - r) bounds the variance of a reward in [0,
1]. The last sum runs over states of
unknown value only: stages before H, levels from 1. Deviation from the reference: its Algorithm 2 also takes the min with
the Q of the episode before, which is ``monotone=True`` here; the default leaves it out. The policy is greedy in the clipped
Q, and ties go to the first action: among actions that were never tried, or whose Q is clipped at 1, numbering decides.

Only counts and what follows from them at single entries are kept. An episode visits one entry (l, a) of each stage, so
only there r, p and b change: they are computed for the visited entries [H] and put in their places, and planning reads
them without dividing or taking roots again.

Arrays are laid out [..., action, level, stage, lanes], level 0 left out (it has value 0): everything indexes leading
axes only, so the same code runs one seed, runs under ``vmap``, and runs seeds side by side. Stages and lanes are
neighbours in memory and kernels run over both as one axis: a loop over few lanes alone is not vectorised by XLA on CPU.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import choice, number
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.ucbvi_counts import counted, modelled, paid, read, visited, write
from jaxbandit.learners.ucbvi_pieces import pieces_form
from jaxbandit.learners.ucbvi_planning import one_below_the_other, planned
from jaxbandit.learners.ucbvi_straight import straight_form
from jaxbandit.learners.ucbvi_values import PlanTables, UCBVIConstants, doubt
from jaxbandit.types import Array
from jaxbandit.xla.barriers import together

PRESETS = {"theory": 1.0, "practical": 2.0**-5, "practical-bernstein": 2.0**-8}


class UCBVIState(NamedTuple):
    """What was seen at each action a, level l = 1..k and stage i, and what was planned from it.

    Counts are int32, exact up to 2^31 visits.
    """

    counts: Array
    """int32 [1 + k, A, k, H, *lanes]: visits N_{l,i}(a), then those that went on to level s = 1..k."""
    rewards: Array
    """int32 [2, A, k, H, *lanes]: the sum of rewards is the first + the second / 2^30, below 2^30."""
    model: Array
    """float32 [2 + k or 1 + k, A, k, H, *lanes]: what planning reads, see `modelled`."""
    values: Array
    """float32 [k, H+1, *lanes]: V_{l,i} of the next episode, optimistic; 0 after stage H."""
    ceiling: Array | None
    """float32 [A, k, H, *lanes]: Q_{l,i}(a) of the next episode, if it bounds the one after; else None."""
    policy: Array
    """int32 [k+1, H, *lanes]: the greedy policy; ties go to the first action, level 0 plays action 0."""

    @property
    def visits(self) -> Array:
        """int32 [H, k, A, *lanes]: N_{l,i}(a), levels 1..k."""
        return jnp.moveaxis(self.counts[0], (2, 1, 0), (0, 1, 2))


def ucbvi(
    bonus_scale: float | None = None,
    monotone: bool = False,
    bonus: str | None = None,
    preset: str | None = None,
) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding or the Bernstein bonus.

    Args:
        bonus_scale: c >= 0; 1 if neither it nor a preset is given.
        monotone: take the min with the Q of the episode before.
        bonus: "hoeffding" (the default) or "bernstein".
        preset: "theory" (c = 1), "practical" (c = 1/32, no guarantee) or "practical-bernstein" (the
            Bernstein bonus with c = 1/256, no guarantee either, and lower regret at most T);
            ``bonus_scale`` overrides it.

    Example:
        >>> learner = ucbvi(preset="practical")
        >>> learner.feedback, float(learner.params["bonus_scale"])
        ('semi-bandit', 0.03125)
    """
    choice("preset", preset, (None, *PRESETS))
    if bonus_scale is None:
        bonus_scale = PRESETS[preset or "theory"]
    choice("monotone", monotone, (False, True))
    if bonus is None:
        bonus = "bernstein" if preset == "practical-bernstein" else "hoeffding"
    choice("bonus", bonus, ("hoeffding", "bernstein"))
    check({"bonus_scale": bonus_scale})
    init, update = _variant(monotone, bonus == "bernstein")
    return Learner(
        init=init,
        act=act,
        update=update,
        feedback="semi-bandit",
        params={"bonus_scale": np.float32(bonus_scale)},
        name="ucbvi",
        lanes_last=True,
        constants=constants,
        check=check,
        straight=straight_form(UCBVIState, bonus == "bernstein"),
        staged=None if monotone or bonus == "bernstein" else pieces_form(UCBVIState, update),
    )


def check(params: Any) -> None:
    """Refuses bonus scales that are not finite numbers >= 0."""
    number("bonus_scale", params["bonus_scale"], low=0)


def constants(problem: Problem, params: Any) -> UCBVIConstants:
    """c and L = ln(5 k A H T / delta) with delta = 1/T, at every stage."""
    size = problem.horizon * problem.num_actions * problem.width
    episodes = jnp.asarray(problem.num_episodes, float)
    term = np.log(5 * size) + 2 * jnp.log(episodes)  # T^2 may overflow
    stages = (problem.horizon,)
    return UCBVIConstants(
        scale=jnp.full(stages, params["bonus_scale"], jnp.float32),
        log_term=jnp.full(stages, term, jnp.float32),
    )


def act(state: UCBVIState, key: Array, constants: UCBVIConstants) -> Array:
    """The greedy policy, int32 [H, k+1, *lanes]."""
    del key, constants
    return jnp.moveaxis(state.policy, 0, 1)


@cache
def _variant(monotone: bool, bernstein: bool):
    """init and update of a variant; the same objects on every call, so that equal learners share compilations."""

    def init(problem: Problem, constants: Any, key: Array) -> UCBVIState:
        """Nothing is known and every Q is 1."""
        del constants, key
        H, k, A = problem.horizon, problem.width, problem.num_actions
        fields = 2 + k if bernstein else 1 + k
        return UCBVIState(
            counts=jnp.zeros((1 + k, A, k, H), jnp.int32),
            rewards=jnp.zeros((2, A, k, H), jnp.int32),
            # Unvisited entries have mean reward 1 and lead nowhere: clipped at 1, their Q is 1.
            model=jnp.zeros((fields, A, k, H), jnp.float32).at[0].set(1),
            values=jnp.ones((k, H + 1), jnp.float32).at[:, H].set(0),
            ceiling=jnp.ones((A, k, H), jnp.float32) if monotone else None,
            policy=jnp.zeros((k + 1, H), jnp.int32),
        )

    @together
    def renew(
        state: UCBVIState, feedback: SemiBanditFeedback, constants: UCBVIConstants
    ) -> UCBVIState:
        """Line by line: count the episode, refresh the model where it went, plan backwards, be greedy."""
        width = state.counts.shape[2]
        seen = jax.tree.map(lambda x: x.reshape(-1), feedback)
        entry, target, reward = visited(seen, jnp.int32(width))
        counts = counted(read(state.counts, entry), target)
        rewards = paid(read(state.rewards, entry), reward)
        known = modelled(bernstein)(counts, rewards, *(x.reshape(-1) for x in constants))
        state = state._replace(
            counts=write(state.counts, entry, counts),
            rewards=write(state.rewards, entry, rewards),
            model=write(state.model, entry, known),
        )
        unknown = doubt(state.counts[0], constants.log_term[0]) if bernstein else None
        plan = PlanTables(state.model, unknown, state.ceiling)
        values, actions, ceiling = planned(plan, constants, state.values)
        ended = state.policy.reshape(width + 1, -1)[:1]
        policy = one_below_the_other(ended, actions.reshape(width, -1))
        return state._replace(
            values=values, ceiling=ceiling, policy=policy.reshape(state.policy.shape)
        )

    def update(
        state: UCBVIState, policy: Array, feedback: SemiBanditFeedback, constants: UCBVIConstants
    ) -> UCBVIState:
        """`renew`; what was played is in the feedback."""
        del policy
        chex.assert_equal_shape(list(feedback))
        return renew(state, feedback, constants)

    return init, update
