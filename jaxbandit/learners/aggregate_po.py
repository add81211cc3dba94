"""Policy optimisation from the total reward and the visited path (trajectory feedback).

After Lancewicki and Mansour (2025), "Near-optimal regret using policy optimization in online MDPs
with aggregate bandit feedback". At every state an exponential-weights learner maximises

    U_{l,i}(a) = E[total reward of the episode | level l is visited at stage i and plays a],

which differs from Q_{l,i}(a) by what was collected before stage i, and that does not depend on a.
After an episode of policy pi with total X, path l_1, ..., l_H and actions a_1, ..., a_H,

    U-hat_{l,i}(a) = (X - b_{l,i}) 1{l_i = l, a_i = a} / (q_i(l) pi_{l,i}(a) + gamma),
    theta_{l,i} <- theta_{l,i} + eta U-hat_{l,i},   pi = softmax(theta).

theta begins at 0. eta = c sqrt(ln A / (k A T)) with c = ``learning_rate`` (ln 2 where A = 1), and gamma = eta (implicit
exploration, Neu 2015). An episode costs O(H k^2 A).

q_i(l) is the estimated probability of visiting (l, i). With N_{l,i}(a) visits, of which M_{l,i}(a, s) went on to level
s = 1..k, and S_l of t episodes that began at level l, *the present episode included in all of them*,

    q_1(l) = S_l / t,     q_{i+1}(s) = sum_{l, a} q_i(l) pi_{l,i}(a) p_i(s | l, a),
    p_i(s | l, a) = (M_{l,i}(a, s) + 1 / (k+1)) / (N_{l,i}(a) + 1):

one imagined visit is spread evenly over the k+1 next levels 0..k, of which level 0 is not followed. With the true q and
gamma = 0 the mean of U-hat is U - b exactly.

b_{l,i} is a running mean of totals, 0 at first. U-hat uses b from before the episode; then, at the states on the path,

    b_{l,i} <- b_{l,i} + max(1 / n, 1/100) (X - b_{l,i}),     n = sum_a N_{l,i}(a), the present visit included:

the mean of the first 100 visits, and from then on one that forgets. There are no ties: the policy is a softmax.

Deviations from the reference, which plays against an adversary: empirical transitions in place of optimistic ones and no
exploration bonus; the baseline b, which lowers the variance and is independent of the action; values are rewards in [0, 1].
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import TrajectoryFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.policy_gradient import softmax
from jaxbandit.specs import Real, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active, separate, together

FORGETTING = 0.01
"""The least weight of the last visit in a state's baseline."""


class AggregateState(NamedTuple):
    """The policy, the transitions seen, and the baselines; with lanes, every leaf has trailing lane axes."""

    theta: Array
    """float32 [H, k, A]."""
    visits: Array
    """int32 [H, k, A]."""
    moves: Array
    """int32 [H, k, A, k]: those that went on to level s = 1..k; not known of the last stage."""
    starts: Array
    """int32 [k]: how often an episode began at each level."""
    baseline: Array
    """float32 [H, k]: b."""


@takes(learning_rate=Real(low=0, above=True))
def aggregate_po(learning_rate: float = 1.0) -> Learner:
    """Policy optimisation with ``learning_rate`` times sqrt(ln A / (k A T)).

    Args:
        learning_rate: > 0, on the rate above.

    Example:
        >>> aggregate_po(learning_rate=5).feedback
        'trajectory'
    """
    fields = as_params(aggregate_po.specs, learning_rate=learning_rate)  # type: ignore[attr-defined]
    return Learner(
        init, act, update, "trajectory", name="aggregate-po", constants=constants, **fields
    )


def constants(problem: Problem, params: Any) -> np.float32:
    """eta = c sqrt(ln A / (k A T)), as if A = 2 in ln A where there is no choice."""
    k, A = problem.width, problem.num_actions
    unit = np.sqrt(np.log(max(A, 2)) / (k * A) / float(problem.num_episodes))
    return np.float32(float(params["learning_rate"]) * unit)


def init(problem: Problem, constants: Any, key: Array) -> AggregateState:
    """All actions alike."""
    del constants, key
    H, k, A = problem.horizon, problem.width, problem.num_actions
    return AggregateState(
        theta=jnp.zeros((H, k, A), jnp.float32),
        visits=jnp.zeros((H, k, A), jnp.int32),
        moves=jnp.zeros((H, k, A, k), jnp.int32),
        starts=jnp.zeros(k, jnp.int32),
        baseline=jnp.zeros((H, k), jnp.float32),
    )


def act(state: AggregateState, key: Array, rate: Array) -> Array:
    """softmax(theta), float32 [H, k+1, A, *lanes]; level 0 plays action 0."""
    del key, rate
    policy = softmax(state.theta)
    dead = jnp.zeros_like(policy[:, :1]).at[:, :, 0].set(1)
    return jnp.concatenate([dead, policy], axis=1)


def occupancy(policy: Array, transition: Array, start: Array) -> Array:
    """q_i(l) [H, k, *lanes] of a policy [H, k, A, *lanes], transitions [H, k, A, k, *lanes] and probabilities of the first
    level [k, *lanes]."""

    def forward(here, x):
        policy, transition = x
        flow = here[:, None] * policy
        weights = [flow[:, a, None] * transition[:, a] for a in range(flow.shape[1])]
        spread = reduce(jnp.add, weights)
        onward = reduce(jnp.add, [spread[level] for level in range(spread.shape[0])])
        return onward, here

    unroll = policy.shape[0] if active().straight else 1
    return jax.lax.scan(forward, start, (policy, transition), unroll=unroll)[1]


def marks(places: Array, count: int) -> Array:
    """bool [H, count, *lanes]: which of ``count`` places each entry [H, *lanes] is; none if it is below 0.

    Example:
        >>> import jax.numpy as jnp
        >>> marks(jnp.asarray([1, -1]), 2).tolist()
        [[False, True], [False, False]]
    """
    shape = (places.shape[0], count, *places.shape[1:])
    return places[:, None] == jax.lax.broadcasted_iota(places.dtype, shape, 1)


@separate
def estimate(
    policy: Array, visiting: Array, baseline: Array, gamma: Array, feedback: TrajectoryFeedback
) -> Array:
    """U-hat [H, k, A, *lanes] of one episode, from pi [H, k, A, *lanes], q and b [H, k, *lanes]."""
    width, num_actions = policy.shape[1:3]
    level, action = marks(feedback.levels - 1, width), marks(feedback.actions, num_actions)
    gain = feedback.total.astype(policy.dtype)[None, None] - baseline
    all_of_them = gain[:, :, None] / (visiting[:, :, None] * policy + gamma[None, None, None])
    return jnp.where(level[:, :, None] & action[:, None], all_of_them, 0)


@separate
def _count(visits: Array, moves: Array, feedback: TrajectoryFeedback) -> tuple[Array, Array]:
    """Visits and moves after the episode; the last stage leads nowhere."""
    width, num_actions = visits.shape[1:3]
    level, action = marks(feedback.levels - 1, width), marks(feedback.actions, num_actions)
    here = level[:, :, None] & action[:, None]
    onward = jnp.concatenate([level[1:], jnp.zeros_like(level[:1])])
    moved = here[:, :, :, None] & onward[:, None, None]
    return visits + here.astype(jnp.int32), moves + moved.astype(jnp.int32)


@separate
def _transitions(visits: Array, moves: Array) -> Array:
    """p_i(s | l, a) [H, k, A, k, *lanes], with one imagined visit."""
    seen = visits.astype(jnp.float32)[:, :, :, None]
    prior = np.float32(1 / (moves.shape[3] + 1))
    return (moves.astype(jnp.float32) + prior) / (seen + 1)


@together
def update(
    state: AggregateState, policy: Array, feedback: TrajectoryFeedback, rate: Array
) -> AggregateState:
    """A step of ascent at the visited states, and what the path says of the transitions."""
    (horizon, width, _), lanes = state.theta.shape[:3], state.theta.shape[3:]
    chex.assert_shape(list(feedback), [(horizon, *lanes), (horizon, *lanes), lanes])
    policy = policy[:, 1:]
    visits, moves = _count(state.visits, state.moves, feedback)
    first = marks(feedback.levels[:1] - 1, width)[0]
    starts = state.starts + first.astype(jnp.int32)
    begun = reduce(jnp.add, list(starts))
    shares = starts.astype(jnp.float32) / jnp.maximum(begun, 1).astype(jnp.float32)[None]
    visiting = occupancy(policy, _transitions(visits, moves), shares)
    step = estimate(policy, visiting, state.baseline, rate, feedback)
    # The baselines of the visited states.
    times = reduce(jnp.add, [visits[:, :, a] for a in range(visits.shape[2])])
    weight = jnp.maximum(1 / jnp.maximum(times, 1).astype(jnp.float32), FORGETTING)
    level = marks(feedback.levels - 1, width)
    surprise = feedback.total.astype(jnp.float32)[None, None] - state.baseline
    return state._replace(
        theta=state.theta + rate[None, None, None] * step,
        visits=visits,
        moves=moves,
        starts=starts,
        baseline=state.baseline + jnp.where(level, weight * surprise, 0),
    )
