"""Stochastic knapsack with a fixed order of the items (Section 3.3 of the paper).

Item i has a random reward and integer cost, drawn jointly (possibly correlated) and only seen once
it is accepted. Actions: 0 rejects, 1 accepts. If the cost of an accepted item is at most the
remaining budget, its reward is collected and the budget shrinks; otherwise the run stops without
that reward. A remaining budget of 0 can still take items of cost 0, so remaining budget b is level
b + 1, the width is budget + 1, and level 0 means "stopped". Rejecting stays for sure: it is the
maximal action of Assumption 3.2 at every state.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, remember, short
from jaxbandit.types import Array

REJECT, ACCEPT = 0, 1
LARGEST_COST = 2**31 - 2
"""Costs are drawn as 32-bit integers."""
LEVEL = "budget left + 1"
PROBABILITIES, REWARDS, COSTS = 0, 1, 2
"""Roles of the keys folded in by `knapsack_random`."""


@checks.single_precision
def knapsack(
    probabilities: Any, rewards: Any, costs: Any, budget: int, reward_scale: Any = None
) -> MDP:
    """The knapsack problem of a user's own items.

    Item i has reward ``rewards[i, m]`` and cost ``costs[i, m]`` with probability ``probabilities[i,
    m]``, each [H, M]. If items differ in the number of outcomes, pad with outcomes of probability
    0.

    Args:
        probabilities: rows sum to 1, [H, M].
        rewards: numbers >= 0, [H, M].
        costs: integers >= 0 (a cost above the budget never fits), [H, M].
        budget: an integer >= 0.
        reward_scale: rewards are divided by it; by default by the largest total that any run can
        collect.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance(
        ...     "knapsack", budget=2,
        ...     probabilities=[[0.5, 0.5], [1, 0]], rewards=[[3, 1], [2, 0]], costs=[[1, 2], [1, 0]])
        >>> value, policy = jb.optimal(mdp)   # accept both; the second fits half of the time: (2 + 2/2) / 5
        >>> round(float(value), 4), mdp.width, policy[0].tolist()
        (0.6, 3, [0, 0, 0, 1])
    """
    budget = checks.whole("budget", budget, at_least=0)
    probabilities = checks.matrix("probabilities", probabilities, "[H, M]")
    rewards = checks.matrix("rewards", rewards, "[H, M]", probabilities.shape)
    costs = checks.matrix("costs", costs, "[H, M]", probabilities.shape)
    checks.distributions("probabilities", probabilities)
    checks.nonnegative("rewards", rewards)
    checks.nonnegative("costs", costs)
    checks.whole_numbers("costs", costs)
    checks.magnitudes("rewards", rewards)
    _check_size(probabilities.shape[0], probabilities.shape[1], budget)
    dtype = checks.float_dtype()
    # A cost above the budget does not fit, however large: clipping keeps it from overflowing the
    # integers.
    costs = (
        (jnp if isinstance(costs, jax.Array) else np).minimum(costs, budget + 1).astype(np.int32)
    )
    items = jnp.asarray(probabilities, dtype), jnp.asarray(rewards, dtype), jnp.asarray(costs)
    if reward_scale is not None:
        what = "the largest total that a run can collect"
        checks.scale("reward_scale", reward_scale, _largest_total(*items, budget), what)
        reward_scale = jnp.asarray(reward_scale, dtype)
    return _named(_item_mdp(*items, reward_scale, budget), items, reward_scale, budget)


@checks.single_precision
def knapsack_random(
    key: Any, horizon: int, budget: int, num_outcomes: int = 4, largest_cost: int | None = None
) -> MDP:
    """Random items: each has ``num_outcomes`` pairs (reward, cost) with probabilities uniform on
    the simplex.

    Rewards are uniform on [0, 1], costs uniform on 0..``largest_cost``.

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of items.
        budget: what all accepted items may cost together, a whole number.
        num_outcomes: M, the pairs (reward, cost) that an item may turn out to have.
        largest_cost: of an item, a whole number; by default the budget.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("knapsack-random", key=jax.random.key(0), horizon=6, budget=3)
        >>> mdp.prob.shape                       # levels: stopped, and remaining budgets 0..3
        (6, 5, 2, 4)
    """
    key = checks.single_key(key)
    shape = (checks.whole("horizon", horizon), checks.whole("num_outcomes", num_outcomes))
    budget = checks.whole("budget", budget, at_least=0)
    _check_size(*shape, budget)
    top = (
        budget
        if largest_cost is None
        else checks.whole("largest_cost", largest_cost, 0, LARGEST_COST)
    )
    mdp = _drawn(key, shape, budget, top)
    if not checks.is_concrete(mdp.prob):
        return mdp
    return remember(mdp, Labels(actions=(("reject", "accept"),) * shape[0], level=LEVEL))


def _named(mdp: MDP, items: Any, reward_scale: Any, budget: int) -> MDP:
    """The MDP with its items as names and rewards in their scale; while it is traced, without."""
    if not checks.is_concrete(*items, mdp.prob, reward_scale):
        return mdp
    largest = _largest_total(*items, budget) if reward_scale is None else reward_scale
    _, rewards, costs = (np.asarray(x) for x in items)
    offers = tuple(
        tuple(f"{short(float(r))} for {int(c)}" for r, c in zip(*row, strict=True))
        for row in zip(rewards, costs, strict=True)
    )
    actions = (("reject", "accept"),) * len(offers)
    return remember(
        mdp,
        Labels(unit="", scale=float(largest) or 1.0, actions=actions, offers=offers, level=LEVEL),
    )


def _check_size(horizon: int, num_outcomes: int, budget: int) -> None:
    levels = budget + 2
    checks.table(
        ("horizon", horizon), ("budget + 2", levels), ("actions x outcomes", 2 * num_outcomes)
    )


@partial(jax.jit, static_argnames=("shape", "budget", "largest_cost"))
def _drawn(key: Array, shape: tuple[int, int], budget: int, largest_cost: int) -> MDP:
    probabilities = checks.simplex_rows(jax.random.fold_in(key, PROBABILITIES), shape)
    rewards = jax.random.uniform(jax.random.fold_in(key, REWARDS), shape, checks.float_dtype())
    costs = jax.random.randint(
        jax.random.fold_in(key, COSTS), shape, 0, largest_cost + 1, jnp.int32
    )
    return _item_mdp(probabilities, rewards, jnp.minimum(costs, budget + 1), None, budget)


@partial(jax.jit, static_argnames="budget")
def _largest_total(probabilities: Array, rewards: Array, costs: Array, budget: int) -> Array:
    """The largest total reward of any run, by backward induction over the remaining budgets
    0..b."""
    left = jnp.arange(budget + 1, dtype=jnp.int32)[:, None] - jnp.zeros_like(costs[0])[None, :]

    def back(best, item):
        possible, reward, cost = item
        after = left - cost[None, :]
        total = jnp.where(
            (after >= 0) & possible[None, :], reward[None, :] + best[jnp.maximum(after, 0)], 0
        )
        best = jnp.maximum(best, jnp.max(total, axis=1))
        return best, None

    nothing = jnp.zeros(budget + 1, rewards.dtype)
    best, _ = jax.lax.scan(back, nothing, (probabilities > 0, rewards, costs), reverse=True)
    return best[budget]


@partial(jax.jit, static_argnames="budget")
def _item_mdp(
    probabilities: Array, rewards: Array, costs: Array, scale: Array | None, budget: int
) -> MDP:
    if scale is None:
        largest = _largest_total(probabilities, rewards, costs, budget)
        scale = jnp.where(largest > 0, largest, 1)
    rewards = jnp.where(probabilities > 0, rewards / scale, 0)
    horizon, num_outcomes = probabilities.shape
    shape = (horizon, budget + 2, num_outcomes)
    levels = jnp.arange(budget + 2, dtype=jnp.int32)[None, :, None]
    after = (
        levels - costs[:, None, :]
    )  # the level of remaining budget b - cost; below 1 it does not fit
    fits = (after >= 1) & (levels >= 1)
    rejected = jnp.broadcast_to(levels, shape), jnp.zeros(shape, rewards.dtype)
    accepted = jnp.where(fits, after, 0), jnp.where(fits, rewards[:, None, :], 0)
    next_level, reward = (jnp.stack(pair, axis=2) for pair in zip(rejected, accepted, strict=True))
    rank = jnp.asarray([1, 0], jnp.int32)
    return MDP(
        prob=jnp.broadcast_to(probabilities[:, None, None, :], next_level.shape),
        reward=reward,
        next_level=next_level,
        rank=jnp.broadcast_to(rank[None, None, :], next_level.shape[:3]),
        start=jnp.asarray(budget + 1, jnp.int32),
    )
