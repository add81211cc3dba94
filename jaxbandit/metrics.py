"""What a learner knows, over time: functions of its state that a sweep evaluates at the recorded episodes.

    jb.sweep(learners, instances, ..., metrics={"optimism": jb.metrics.optimism, "mine": my_function})

A metric is a pure jax function ``metric(state, world) -> number or small array``. ``state`` is the learner's
(of one run: lanes are taken away before), ``world`` is what the learner does not know (`World`). Its
name becomes a variable of the Dataset, with the dimensions that `dims` gives to the function's axes. Either
engine calls it; a block learner's state is that of its block form on both.

Those below read states by the names of their fields or properties:

    function          reads                                       has a value for
    policy_gap        world.policy                                every learner
    entropy           logits [H, k, A], else world.policy         every learner
    best_guess_gap    committed [H, k+1], or logits, else policy  every learner
    active_actions    active [H, k+1, A]                          those that drop actions, such as expref
    optimism          optimistic_values [H, k]                    ucbvi, q-learning
    visits            visits [H, k, A]                            those that count states, such as ucbvi and psrl

and are nan for states that have none of these, as everything in a Dataset that does not exist. A
learner of one's own takes part by giving its state a field or property of such a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.mdp import MDP, plain, transition_kernel
from jaxbandit.planning import action_probabilities, gaps, optimal_values
from jaxbandit.types import Array, State

Metric = Callable[[State, "World"], Array]
RUN = ("learner", "instance", "parameter", "seed", "episode", "family")
"""Axes that every metric has; its own have other names."""


class World(NamedTuple):
    """What an engine knows beside the learner's state, for one run."""

    transition: Array
    """float [H, k+1, A, k+1]: p_i(s | l, a)."""
    gap: Array
    """float [H, k+1, A]: what an action loses, `planning.gaps`."""
    optimal_values: Array
    """float [H+1, k+1]: Opt_{l,i}."""
    start: Array
    """int32 []: the start level."""
    policy: Array
    """The policy of the next episode: int [H, k+1], or action probabilities float [H, k+1, A]."""
    constants: Any = ()
    """The learner's constants, if it has some."""


def make_world(mdp: MDP, policy: Array, constants: Any = ()) -> World:
    """The world of one instance.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> world = make_world(mdp, jnp.zeros((2, 2), jnp.int32))
        >>> world.optimal_values.shape, world.gap.shape
        ((3, 2), (2, 2, 3))
    """
    mdp = plain(mdp)
    return World(
        transition=transition_kernel(mdp),
        gap=gaps(mdp),
        optimal_values=optimal_values(mdp)[0],
        start=jnp.asarray(mdp.start, jnp.int32),
        policy=jnp.asarray(policy),
        constants=constants,
    )


def dims(*names: str) -> Callable[[Metric], Metric]:
    """Names the axes of a metric's answer, as they are called in the Dataset.

    Example:
        >>> @dims("stage")
        ... def visits_of_each_stage(state, world):
        ...     return state.visits.sum(axis=(1, 2))
        >>> dims_of(visits_of_each_stage)
        ('stage',)
    """

    def named(metric: Metric) -> Metric:
        metric.dims = names  # type: ignore[attr-defined]
        return metric

    return named


def dims_of(metric: Metric) -> tuple[str, ...] | None:
    """The names of the axes that `dims` gave, () for a number, None if nobody named them."""
    return getattr(metric, "dims", None)


def check_metrics(
    metrics: Any, taken: Mapping[str, Any] | tuple[str, ...] = ()
) -> dict[str, Metric]:
    """The metrics by name, or an error: names are identifiers that are not ``taken``, values are functions.

    Example:
        >>> check_metrics({"regret": len}, taken=("regret",))
        Traceback (most recent call last):
        ...
        ValueError: metrics: name 'regret'; accepted: an identifier that is no other variable
    """
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        accepted = "a dictionary, name -> function(state, world)"
        raise ValueError(f"metrics: {metrics!r}; accepted: {accepted}")
    for name, metric in metrics.items():
        axes = dims_of(metric) or ()
        wrong = [dim for dim in axes if not isinstance(dim, str) or dim in RUN]
        objection = ""
        if not isinstance(name, str) or not name.isidentifier() or name in taken:
            objection = f": name {name!r}; accepted: an identifier that is no other variable"
        elif not callable(metric):
            objection = f"[{name!r}]: {metric!r}; accepted: a function of (state, world)"
        elif wrong:
            accepted = f"names other than {', '.join(RUN)}"
            objection = f"[{name!r}]: dims: {wrong[0]!r}; accepted: {accepted}"
        if objection:
            raise ValueError(f"metrics{objection}")
    return dict(metrics)


@dims()
def policy_gap(state: State, world: World) -> Array:
    """The exact expected regret of the next episode.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> f"{policy_gap((), make_world(mdp, jnp.array([[0, 2], [0, 0]]))):.3f}"
        '0.167'
    """
    del state
    return _gap_of(world, world.policy)


@dims()
def best_guess_gap(state: State, world: World) -> Array:
    """The exact regret per episode of the policy that the learner would stop with.

    That is alpha-hat of the last complete phase for ExpRef, the most likely actions for a learner
    that draws its policies, and the policy of the next episode (its most likely actions) for others.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> f"{best_guess_gap((), make_world(mdp, jnp.full((2, 2, 3), 1 / 3))):.3f}"     # action 0: optimal
        '0.000'
    """
    state = _own(state)
    if hasattr(state, "committed"):
        guess = state.committed
    elif hasattr(state, "logits"):
        guess = _with_level_zero(jnp.argmax(state.logits, axis=-1).astype(jnp.int32), 0)
    else:
        guess = jnp.argmax(_choices(world), axis=-1).astype(jnp.int32)
    return _gap_of(world, guess)


@dims()
def entropy(state: State, world: World) -> Array:
    """The entropy of the next action in nats, averaged over the states of levels 1..k: 0 to ln A.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> f"{entropy((), make_world(mdp, jnp.full((2, 2, 3), 1 / 3))):.3f}"            # ln 3
        '1.099'
    """
    state = _own(state)
    if hasattr(state, "logits"):
        chances = jax.nn.softmax(state.logits, axis=-1)
    else:
        chances = _choices(world)[:, 1:]
    return jnp.mean(-jnp.sum(jax.scipy.special.xlogy(chances, chances), axis=-1))


@dims()
def active_actions(state: State, world: World) -> Array:
    """How many actions are still active, averaged over the states of levels 1..k: 1 to A.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> bool(jnp.isnan(active_actions((), make_world(mdp, jnp.zeros((2, 2), jnp.int32)))))
        True
    """
    active = getattr(_own(state), "active", None)
    if active is None:
        return _nothing(world)
    states = active if active.ndim == 1 else active[:, 1:]  # of K arms, or of all states
    return jnp.mean(jnp.sum(states.astype(world.gap.dtype), axis=-1))


@dims()
def optimism(state: State, world: World) -> Array:
    """What the learner hopes for above what is possible: its optimistic value of the start - Opt.

    Negative values mean that the bonus is too small to be a bound. Example: as `policy_gap`; the
    state must have ``optimistic_values``.
    """
    values = getattr(_own(state), "optimistic_values", None)
    if values is None:
        return _nothing(world)
    hoped = values[0, world.start - 1].astype(world.gap.dtype)
    return hoped - world.optimal_values[0, world.start]


@dims("stage", "level")
def visits(state: State, world: World) -> Array:
    """How often the learner was at each state, float [H, k+1]; nan at level 0, which nobody counts.

    Example: as `policy_gap`; the state must have ``visits``.
    """
    counts = getattr(_own(state), "visits", None)  # int [S, k, A], levels 1..k
    shape = world.gap.shape[:2]
    if counts is None:
        return jnp.broadcast_to(_nothing(world), shape)
    pooled = jnp.sum(counts, axis=-1).astype(world.gap.dtype)  # S = 1 if stages have them in common
    return _with_level_zero(jnp.broadcast_to(pooled, (shape[0], pooled.shape[1])), jnp.nan)


METRICS: dict[str, Metric] = {
    "policy_gap": policy_gap,
    "best_guess_gap": best_guess_gap,
    "entropy": entropy,
    "mean_active": active_actions,
    "optimism": optimism,
    "visits": visits,
}
"""All of them by the name of their variable: ``jb.sweep(..., metrics=jb.metrics.METRICS)`` records everything. (A
Dataset has "active_actions" already, state by state; here it is their mean.)"""


def _own(state: State) -> State:
    """The innermost state: of the block form that an adapter plays episode by episode, of the learner that another
    one carries on. Nothing if it is an array: what that has (``committed``, say) is jax's."""
    while not hasattr(state, "dtype") and hasattr(state, "inner"):
        state = state.inner
    return () if hasattr(state, "dtype") else state


def _choices(world: World) -> Array:
    return action_probabilities(world.policy, world.gap.shape[-1], world.gap.dtype)


def _nothing(world: World) -> Array:
    return jnp.full((), jnp.nan, world.gap.dtype)


def _with_level_zero(table: Array, value: float) -> Array:
    """[H, k+1] from [H, k]."""
    return jnp.concatenate([jnp.full_like(table[:, :1], value), table], axis=1)


def _gap_of(world: World, policy: Array) -> Array:
    """The expected sum of gaps along the policy's path."""
    choice = action_probabilities(policy, world.gap.shape[-1], world.gap.dtype)

    def back(tail: Array, stage: Any) -> tuple[Array, None]:
        move, lost, chosen = stage
        ahead = lost + jnp.sum(move * tail[None, None, :], axis=-1)
        return jnp.sum(chosen * ahead, axis=-1), None

    last = jnp.zeros_like(world.optimal_values[-1])
    first, _ = jax.lax.scan(back, last, (world.transition, world.gap, choice), reverse=True)
    return first[world.start]
