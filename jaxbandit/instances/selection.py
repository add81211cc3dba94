"""The selection problems of Section 3.3 of the paper: prophet inequality, posted pricing, knapsack.

Prophets and pricing: independent X_1, ..., X_H arrive in this order and at most k of them may be selected. Level l is the
capacity left; a selection pays and leads to level l - 1. Action a at stage i is the a-th smallest value of the support of
X_i. For the prophet (the experiments' I1 and I2 of Section 5) it is a threshold: X_i is selected iff it *exceeds* the
threshold (strictly), and pays X_i / (k * value_scale). In pricing it is a price: the customer buys iff X_i >= price, and
pays price / (k * value_scale); there is no "do not sell" action, as the highest price still sells when X_i takes its
largest value. The larger the action, the more likely to stay: the order of Assumption 3.2 is that of the values.
Capacities above the horizon are accepted: then some of the capacity can never be used.

Knapsack: item i has a random reward and integer cost, drawn jointly (possibly correlated) and only seen once it is
accepted. Actions: 0 rejects, 1 accepts. If the cost of an accepted item is at most the remaining budget, its reward is
collected and the budget shrinks; otherwise the run stops without that reward. A remaining budget of 0 can still take
items of cost 0, so remaining budget b is level b + 1, the width is budget + 1, and level 0 means "stopped". Rejecting
stays for sure: it is the maximal action of Assumption 3.2 at every state.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, remember, short, threshold_names, value_names
from jaxbandit.planning import optimal_values
from jaxbandit.specs import Optional, Values, Whole, takes
from jaxbandit.types import Array
from jaxbandit.xla.threefry import single_key

VALUES, PROBABILITIES = 0, 1
"""Roles of the keys folded in by `_random_support`."""
ITEM_PROBABILITIES, ITEM_REWARDS, ITEM_COSTS = 0, 1, 2
"""Roles of the keys folded in by `knapsack_random`."""
LARGEST_COST = 2**31 - 2
"""Costs are drawn as 32-bit integers."""

ARRAYS = takes(values=checks.amounts("H A"), probabilities=Values("H A", low=0), capacity=Whole(1))
SIZES = takes(horizon=Whole(1), capacity=Whole(1), num_values=Whole(2))


class Support(NamedTuple):
    """The distributions of X_1..X_H, every support in increasing order."""

    values: Array
    """float [H, A]."""
    probabilities: Array
    """float [H, A]."""
    scale: Array
    """float []: what every reward is divided by, besides the capacity."""


@checks.single_precision
@ARRAYS
def prophet(
    values: Any, probabilities: Any, capacity: int, value_scale: float | None = None
) -> MDP:
    """The prophet problem of a user's own distributions.

    X_i takes ``values[i, m]`` with probability ``probabilities[i, m]``, both [H, A] and in any
    order within a row (actions are numbered by increasing value). If supports differ in size, pad
    the smaller ones by
    repeating the last value with probability 0: the added thresholds do what that value does.

    Args:
        values: numbers >= 0, [H, A].
        probabilities: rows sum to 1, [H, A].
        capacity: k >= 1, the number of values that may be selected.
        value_scale: rewards are X / (k * value_scale); by default 1 if no value exceeds 1, else the
            largest value.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance(
        ...     "prophet", values=[[0, 4], [1, 3]], probabilities=[[0.5, 0.5], [0, 1]], capacity=1)
        >>> value, policy = jb.optimal(mdp)      # take a 4, else the 3: (4/2 + 3/2) / 4
        >>> float(value), policy[:, 1].tolist()
        (0.875, [0, 0])
    """
    return _selection(_support(values, probabilities, value_scale), capacity, pricing=False)


@SIZES
def prophet_uniform(horizon: int, capacity: int, num_values: int) -> MDP:
    """I1 of the experiments: every X_i is uniform on {0, 1/(A-1), 2/(A-1), ..., 1}.

    Args:
        horizon: H, the number of stages.
        capacity: k, how many values may be taken.
        num_values: A >= 2, the values that a stage may offer; each is a threshold, too.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=15, capacity=2, num_values=5)
        >>> mdp.reward[0, 2, 0].tolist()         # action 0 selects all but the value 0, and pays X / k
        [0.0, 0.125, 0.25, 0.375, 0.5]
    """
    _check_size(horizon, 1, num_values)
    shape = (horizon, num_values)
    values = np.broadcast_to(np.linspace(0, 1, num_values), shape)
    return prophet(values, np.full(shape, 1 / num_values), capacity)


@checks.single_precision
@SIZES
def prophet_random(key: Any, horizon: int, capacity: int, num_values: int) -> MDP:
    """I2 of the experiments: A values per stage uniform on [0, 1], probabilities uniform on the
    simplex.

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of stages.
        capacity: k, how many values may be taken.
        num_values: A, the values that a stage may offer; each is a threshold, too.

    Example:
        >>> import jax, jaxbandit as jb
        >>> keys = jax.random.split(jax.random.key(1), 10)
        >>> sizes = dict(horizon=15, capacity=2, num_values=5)
        >>> draw = lambda key: jb.make_instance("prophet-random", key=key, **sizes)
        >>> jax.vmap(draw)(keys).prob.shape      # ten instances, stacked
        (10, 15, 3, 5, 5)
    """
    return _selection(_random_support(key, horizon, num_values), capacity, pricing=False)


@checks.single_precision
@ARRAYS
def posted_pricing(
    values: Any, probabilities: Any, capacity: int, value_scale: float | None = None
) -> MDP:
    """The pricing problem of a user's own valuations.

    Customer i has valuation ``values[i, m]`` with probability ``probabilities[i, m]``, both [H, A],
    in any order within a row. If supports differ in size, pad the smaller ones by repeating the
    last value with probability 0.

    Args:
        values: valuations, which are also the prices, >= 0, [H, A].
        probabilities: rows sum to 1, [H, A].
        capacity: k >= 1, the number of customers that can be served.
        value_scale: rewards are price / (k * value_scale); by default 1 if no value exceeds 1, else
            the largest value.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("posted-pricing", values=[[2, 5]], probabilities=[[0.5, 0.5]], capacity=1)
        >>> [round(float(jb.evaluate(mdp, [[0, a]])), 4) for a in (0, 1)]   # 2 surely, or 5 half the time
        [0.4, 0.5]
    """
    return _selection(_support(values, probabilities, value_scale), capacity, pricing=True)


@checks.single_precision
@SIZES
def posted_pricing_random(key: Any, horizon: int, capacity: int, num_values: int) -> MDP:
    """Valuations uniform on [0, 1], their probabilities uniform on the simplex (as I2 of the
    prophets).

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of customers.
        capacity: k, the number of items for sale.
        num_values: A, the valuations that a customer may have; these are the prices, too.

    Example:
        >>> import jax, jaxbandit as jb
        >>> key = jax.random.key(0)
        >>> jb.make_instance("posted-pricing-random", key=key, horizon=6, capacity=2, num_values=3).prob.shape
        (6, 3, 3, 3)
    """
    return _selection(_random_support(key, horizon, num_values), capacity, pricing=True)


def _support(values: Array, probabilities: Array, value_scale: Any) -> Support:
    """A user's arrays [H, A], checked and sorted."""
    checks.alike(values=values, probabilities=probabilities)
    checks.distinct("values", values)
    checks.distributions("probabilities", probabilities)
    scale = checks.scale("value_scale", value_scale, values.max(), "the largest value")
    arrays = (jnp.asarray(x, jnp.float32) for x in (values, probabilities))
    return _sorted(*arrays, scale)


@jax.jit
def _sorted(values: Array, probabilities: Array, value_scale: Array | None) -> Support:
    order = jnp.argsort(values, axis=1, stable=True)
    values, probabilities = (jnp.take_along_axis(x, order, axis=1) for x in (values, probabilities))
    if value_scale is None:
        value_scale = jnp.maximum(jnp.max(values), 1)
    return Support(values, probabilities, value_scale)


def _random_support(key: Any, horizon: int, num_values: int) -> Support:
    """Values uniform on [0, 1], probabilities uniform on the simplex, all independent."""
    _check_size(horizon, 1, num_values)
    return _drawn_support(single_key(key), (horizon, num_values))


@partial(jax.jit, static_argnames="shape")
def _drawn_support(key: Array, shape: tuple[int, int]) -> Support:
    values = jax.random.uniform(jax.random.fold_in(key, VALUES), shape, jnp.float32)
    return _sorted(values, checks.simplex_rows(jax.random.fold_in(key, PROBABILITIES), shape), None)


def _check_size(horizon: int, levels: int, num_values: int) -> None:
    checks.table({"horizon": horizon, "capacity + 1": levels, "num_values squared": num_values**2})


def _selection(x: Support, capacity: int, pricing: bool) -> MDP:
    """The MDP, with its values as names and rewards in their scale; while it is traced, without."""
    _check_size(x.values.shape[0], capacity + 1, x.values.shape[1])
    mdp = _selection_mdp(x, capacity, pricing)
    if not checks.is_concrete(x.values, x.scale, mdp.prob):
        return mdp
    words = Labels(
        scale=capacity * float(x.scale),
        actions=value_names(x.values, before="price ") if pricing else threshold_names(x.values),
        offers=value_names(x.values),
        level="capacity left",
    )
    return remember(mdp, words)


@partial(jax.jit, static_argnames=("capacity", "pricing"))
def _selection_mdp(x: Support, capacity: int, pricing: bool) -> MDP:
    offered, asked = x.values[:, None, :], x.values[:, :, None]
    taken = offered >= asked if pricing else offered > asked  # [H, A, M]
    pay = jnp.broadcast_to(asked if pricing else offered, taken.shape)
    horizon, num_actions, num_outcomes = taken.shape
    shape = (horizon, capacity + 1, num_actions, num_outcomes)
    levels = jnp.arange(capacity + 1, dtype=jnp.int32)[None, :, None, None]
    reward = pay / (capacity * x.scale)
    selected = taken[:, None] & (levels > 0)
    return MDP(
        prob=jnp.broadcast_to(x.probabilities[:, None, None, :], shape),
        reward=jnp.where(selected, reward[:, None], 0),
        next_level=levels - selected.astype(jnp.int32),
        rank=jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32)[None, None, :], shape[:3]),
        start=jnp.asarray(capacity, jnp.int32),
    )


@checks.single_precision
@takes(
    probabilities=Values("H M", low=0),
    rewards=checks.amounts("H M"),
    costs=Values("H M", low=0, whole=True),
    budget=Whole(0),
)
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
    checks.alike(probabilities=probabilities, rewards=rewards, costs=costs)
    checks.distributions("probabilities", probabilities)
    _check_items(probabilities.shape, budget)
    # A cost above the budget does not fit, however large: clipping keeps it from overflowing the
    # integers.
    costs = costs.clip(max=budget + 1).astype(np.int32)
    probabilities, rewards = (jnp.asarray(x, jnp.float32) for x in (probabilities, rewards))
    mdp, largest = _item_mdp(probabilities, rewards, jnp.asarray(costs), budget)
    what = "the largest total that a run can collect"
    scale = checks.scale("reward_scale", reward_scale, largest, what)
    scale = largest if scale is None else scale
    mdp = _scaled(mdp, scale)
    if not checks.is_concrete(rewards, costs, mdp.prob, scale):
        return mdp
    offers = tuple(
        tuple(f"{short(float(r))} for {int(c)}" for r, c in zip(*row, strict=True))
        for row in zip(np.asarray(rewards), costs, strict=True)
    )
    return _with_actions(mdp, scale=float(scale) or 1.0, offers=offers)


@checks.single_precision
@takes(
    horizon=Whole(1),
    budget=Whole(0),
    num_outcomes=Whole(1),
    largest_cost=Optional(Whole(0, LARGEST_COST)),
)
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
    shape = (horizon, num_outcomes)
    _check_items(shape, budget)
    largest_cost = budget if largest_cost is None else largest_cost
    mdp = _drawn_items(single_key(key), shape, budget, largest_cost)
    return _with_actions(mdp) if checks.is_concrete(mdp.prob) else mdp


def _with_actions(mdp: MDP, **words: Any) -> MDP:
    actions = (("reject", "accept"),) * mdp.horizon
    return remember(mdp, Labels(actions=actions, level="budget left + 1", **words))


def _check_items(shape: tuple[int, int], budget: int) -> None:
    sizes = {"horizon": shape[0], "budget + 2": budget + 2, "actions x outcomes": 2 * shape[1]}
    checks.table(sizes)


@partial(jax.jit, static_argnames=("shape", "budget", "largest_cost"))
def _drawn_items(key: Array, shape: tuple[int, int], budget: int, largest_cost: int) -> MDP:
    probabilities = checks.simplex_rows(jax.random.fold_in(key, ITEM_PROBABILITIES), shape)
    rewards = jax.random.uniform(jax.random.fold_in(key, ITEM_REWARDS), shape, jnp.float32)
    role = jax.random.fold_in(key, ITEM_COSTS)
    costs = jax.random.randint(role, shape, 0, largest_cost + 1, jnp.int32)
    return _scaled(*_item_mdp(probabilities, rewards, jnp.minimum(costs, budget + 1), budget))


@partial(jax.jit, static_argnames="budget")
def _item_mdp(
    probabilities: Array, rewards: Array, costs: Array, budget: int
) -> tuple[MDP, jax.Array]:
    """The MDP, its rewards not scaled, and the largest total of a run."""
    rewards = jnp.where(probabilities > 0, rewards, 0)
    horizon, num_outcomes = probabilities.shape
    shape = (horizon, budget + 2, num_outcomes)
    levels = jnp.arange(budget + 2, dtype=jnp.int32)[None, :, None]
    after = levels - costs[:, None, :]  # the level of remaining budget b - cost; below 1 no fit
    fits = (after >= 1) & (levels >= 1)
    rejected = jnp.broadcast_to(levels, shape), jnp.zeros(shape, rewards.dtype)
    accepted = jnp.where(fits, after, 0), jnp.where(fits, rewards[:, None, :], 0)
    next_level, reward = (jnp.stack(pair, axis=2) for pair in zip(rejected, accepted, strict=True))
    rank = jnp.asarray([1, 0], jnp.int32)
    mdp = MDP(
        prob=jnp.broadcast_to(probabilities[:, None, None, :], next_level.shape),
        reward=reward,
        next_level=next_level,
        rank=jnp.broadcast_to(rank[None, None, :], next_level.shape[:3]),
        start=jnp.asarray(budget + 1, jnp.int32),
    )
    # the optimal value of one who chooses the outcomes, too
    sure = mdp._replace(
        prob=jnp.ones((*shape[:2], 2 * num_outcomes, 1), reward.dtype),
        reward=reward.reshape(*shape[:2], -1, 1),
        next_level=jnp.where(mdp.prob > 0, next_level, 0).reshape(*shape[:2], -1, 1),
        rank=None,
    )
    return mdp, optimal_values(sure)[0][0, budget + 1]


@jax.jit
def _scaled(mdp: MDP, scale: Array) -> MDP:
    return mdp._replace(reward=mdp.reward / jnp.where(scale > 0, scale, 1))
