"""Policy optimisation from the total reward and the visited path (trajectory feedback).

After Lancewicki and Mansour (2025), "Near-optimal regret using policy optimization in online MDPs
with aggregate bandit feedback". At every state an exponential-weights learner maximises

    U_{l,i}(a) = E[total reward of the episode | level l is visited at stage i and plays a],

which differs from Q_{l,i}(a) by what was collected before stage i, and that does not depend on a.
After an episode of policy pi with total X, path l_1, ..., l_H and actions a_1, ..., a_H,

    U-hat_{l,i}(a) = (X - b_{l,i}) 1{l_i = l, a_i = a} / (q_i(l) pi_{l,i}(a) + gamma),
    theta_{l,i} <- theta_{l,i} + eta U-hat_{l,i},   pi = softmax(theta).

q_i(l) is the probability of visiting (l, i), pushed forward through the empirical transitions; with
the true q and gamma = 0 the mean of U-hat is U - b exactly. eta = c sqrt(ln A / (k A T)) with
c = ``learning_rate``, and gamma = eta (implicit exploration, Neu 2015). An episode costs O(H k^2 A).

Deviations from the reference, which plays against an adversary: empirical transitions (with one
imagined visit, spread evenly) in place of optimistic ones and no exploration bonus; b_{l,i}, the
mean total of the last 100 or so visits of the state, lowers the variance and is independent of the
action; values are rewards in [0, 1].
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import TrajectoryFeedback
from jaxbandit.learner import Learner, Problem, with_zeros
from jaxbandit.learners.parameters import scales
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active

FORGETTING = 0.01
"""The least weight of the last visit in a state's baseline."""


class AggregateState(NamedTuple):
    """The policy, the transitions seen, and the baselines."""

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


class AggregateConstants(NamedTuple):
    """The learning rate and the imagined visit."""

    rate: Array
    """float32 []: eta."""
    prior: Array
    """float32 [k]: the imagined visit's share of every next level, 1 / (k+1); 0 at levels that a padded MDP does not have."""


def aggregate_po(learning_rate: float = 1.0) -> Learner:
    """Policy optimisation with ``learning_rate`` times sqrt(ln A / (k A T)).

    Args:
        learning_rate: > 0, on the rate above.

    Example:
        >>> aggregate_po(learning_rate=5).feedback
        'trajectory'
    """
    fields = scales(learning_rate=learning_rate, above=True)
    return Learner(
        init=init,
        act=act,
        update=update,
        feedback="trajectory",
        name="aggregate-po",
        constants=constants,
        pad=with_zeros,
        **fields,
    )


def constants(problem: Problem, params: Any) -> AggregateConstants:
    """eta = c sqrt(ln A / (k A T)), as if A = 2 in ln A where there is no choice."""
    k, A = problem.width, problem.num_actions
    unit = np.sqrt(np.log(max(A, 2)) / (k * A) / float(problem.num_episodes))
    return AggregateConstants(
        rate=np.float32(float(params["learning_rate"]) * unit),
        prior=np.full(k, 1 / (k + 1), np.float32),
    )


def init(problem: Problem, params: Any) -> AggregateState:
    """All actions alike."""
    del params
    H, k, A = problem.horizon, problem.width, problem.num_actions
    return AggregateState(
        theta=jnp.zeros((H, k, A), jnp.float32),
        visits=jnp.zeros((H, k, A), jnp.int32),
        moves=jnp.zeros((H, k, A, k), jnp.int32),
        starts=jnp.zeros(k, jnp.int32),
        baseline=jnp.zeros((H, k), jnp.float32),
    )


def act(state: AggregateState, key: Array, constants: AggregateConstants) -> Array:
    """softmax(theta), float32 [H, k+1, A]; level 0 plays action 0."""
    del key, constants
    policy = jax.nn.softmax(state.theta, axis=-1)
    dead = jnp.zeros_like(policy[:, :1]).at[:, :, 0].set(1)
    return jnp.concatenate([dead, policy], axis=1)


def occupancy(policy: Array, transition: Array, start: Array) -> Array:
    """q_i(l) [H, k] of a policy [H, k, A], transitions [H, k, A, k] and probabilities of the first
    level [k]."""

    def forward(here, x):
        policy, transition = x
        flow = here[:, None] * policy
        weights = [flow[:, a, None] * transition[:, a] for a in range(flow.shape[1])]
        spread = reduce(jnp.add, weights)
        onward = reduce(jnp.add, [spread[level] for level in range(spread.shape[0])])
        return onward, here

    unroll = policy.shape[0] if active().straight else 1
    return jax.lax.scan(forward, start, (policy, transition), unroll=unroll)[1]


def estimate(
    policy: Array, visiting: Array, baseline: Array, gamma: Array, feedback: TrajectoryFeedback
) -> Array:
    """U-hat [H, k, A] of one episode, from pi [H, k, A], q [H, k] and b [H, k]."""
    _, width, num_actions = policy.shape
    here = (
        jax.nn.one_hot(feedback.levels - 1, width, dtype=policy.dtype)[:, :, None]
        * jax.nn.one_hot(feedback.actions, num_actions, dtype=policy.dtype)[:, None, :]
    )
    gain = feedback.total.astype(policy.dtype) - baseline
    return here * gain[:, :, None] / (visiting[:, :, None] * policy + gamma)


def update(
    state: AggregateState,
    policy: Array,
    feedback: TrajectoryFeedback,
    constants: AggregateConstants,
) -> AggregateState:
    """A step of ascent at the visited states, and what the path says of the transitions."""
    horizon, width, num_actions = state.theta.shape
    chex.assert_shape(list(feedback), [(horizon,), (horizon,), ()])
    level = jax.nn.one_hot(feedback.levels - 1, width, dtype=jnp.int32)
    played = jax.nn.one_hot(feedback.actions, num_actions, dtype=jnp.int32)
    here = level[:, :, None] * played[:, None, :]
    onward = jnp.concatenate([level[1:], jnp.zeros_like(level[:1])])
    visits = state.visits + here
    moves = state.moves + here[..., None] * onward[:, None, None, :]
    starts = state.starts + level[0]
    seen = visits.astype(jnp.float32)[..., None]
    transition = (moves.astype(jnp.float32) + constants.prior[None, None, None]) / (seen + 1)
    begun = jnp.maximum(jnp.sum(starts), 1).astype(jnp.float32)
    visiting = occupancy(policy[:, 1:], transition, starts.astype(jnp.float32) / begun)
    step = estimate(policy[:, 1:], visiting, state.baseline, constants.rate, feedback)
    times = jnp.maximum(jnp.sum(visits, axis=-1), 1).astype(jnp.float32)
    weight = jnp.maximum(1 / times, FORGETTING) * level.astype(jnp.float32)
    total = feedback.total.astype(jnp.float32)
    return state._replace(
        theta=state.theta + constants.rate * step,
        visits=visits,
        moves=moves,
        starts=starts,
        baseline=state.baseline + weight * (total - state.baseline),
    )
