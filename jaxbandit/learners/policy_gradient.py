"""Policy gradient under bandit feedback: what a practitioner would try first.

The policy of each episode is drawn from a product distribution: at stage i and level l = 1..k
action a with probability softmax(theta_{l,i})_a, independently. After an episode with policy pi and
total reward X,

    g_{l,i} = (X - b) (e_{pi(l,i)} - softmax(theta_{l,i}))

is an unbiased estimate of the gradient of the expected total reward (REINFORCE, Williams 1992),
because the baseline b is made of earlier episodes: a running mean that forgets at the rate
``1 - baseline_decay``. An optax transformation turns g into a step of ascent.

Arrays are [stage, level, action, *lanes], level 0 left out (no action matters there): lanes are side by side in trailing
axes, or there are none. Sums over actions are written out, because XLA on CPU hands reductions to a library that is slow
for a few numbers; and exponentials are arrays in memory (`separate`), because it would compute them again for each use.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.specs import Real, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate, together
from jaxbandit.xla.threefry import table_words, unit_float32

if TYPE_CHECKING:  # optax is slow to import, and whoever passes an optimizer has imported it
    import optax

DEFAULT_RATE = 0.2
SPECS = {"baseline_decay": Real(0, 1, below=True), "learning_rate": Real(low=0, above=True)}


class PolicyGradientState(NamedTuple):
    """The distribution over policies, the baseline, and what the optimizer remembers; with lanes, every leaf has
    trailing lane axes."""

    logits: Array
    """float32 [H, k, A]: theta, levels 1..k (at level 0 no action matters)."""
    memory: Any
    """The optimizer's state."""
    baseline: Array
    """float32 []: b."""
    episodes: Array
    """int32 []: episodes so far."""


@takes(baseline_decay=SPECS["baseline_decay"])
def policy_gradient(
    learning_rate: float | Callable[[Array], Array] | None = None,
    optimizer: optax.GradientTransformation | None = None,
    baseline_decay: float = 0.99,
) -> Learner:
    """Stochastic gradient ascent on a product distribution over policies.

    Args:
        learning_rate: a number > 0 (plain gradient ascent; a parameter that sweeps can vary), or an
            optax schedule: a function of the number of episodes so far. 0.2 if nothing else is
            said.
        optimizer: an optax transformation that brings its own learning rate or schedule, such as
            ``optax.adam(0.01)``; it gets the gradient of *minus* the reward, as optax minimises.
            Instead of ``learning_rate``.
        baseline_decay: in [0, 1): how much of the baseline an episode keeps. The first episodes, up
            to 1 / (1 - baseline_decay), are averaged evenly.

    Example:
        >>> import optax
        >>> policy_gradient(learning_rate=optax.exponential_decay(1.0, 1000, 0.5)).feedback
        'bandit'
        >>> sorted(policy_gradient(learning_rate=0.1).params)
        ['baseline_decay', 'learning_rate']
    """
    if optimizer is not None and learning_rate is not None:
        raise ValueError(
            f"learning_rate: {learning_rate!r} beside an optimizer; accepted: one of the two (an optax "
            "optimizer brings its own learning rate)"
        )
    if optimizer is not None and not _is_transformation(optimizer):
        raise ValueError(
            f"optimizer: {optimizer!r}; accepted: an optax.GradientTransformation, or None"
        )
    schedule = learning_rate if callable(learning_rate) else None
    given: dict[str, Any] = {"baseline_decay": baseline_decay}
    if optimizer is None and schedule is None:
        rate = DEFAULT_RATE if learning_rate is None else learning_rate
        given["learning_rate"] = SPECS["learning_rate"].check("learning_rate", rate)
    init, update = _functions(optimizer, schedule)
    return Learner(init, act, update, name="policy-gradient", **as_params(SPECS, **given))


def _is_transformation(value: Any) -> bool:
    return callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))


def act(state: PolicyGradientState, key: Array, constants: Any) -> Array:
    """A policy drawn from the distribution, int32 [H, k+1, *lanes]; level 0 plays action 0."""
    del constants
    return drawn_policy(state.logits, key)


@contextlib.contextmanager
def _default_promotion():
    """jax's own promotion rules, whatever the caller's: optax and users' schedules mix dtypes."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@cache
def _functions(
    optimizer: optax.GradientTransformation | None, schedule: Callable[[Array], Array] | None
):
    """init and update for an optimizer or schedule; the same objects for the same arguments."""

    def init(problem: Problem, constants: Any, key: Array) -> PolicyGradientState:
        del constants, key
        logits = jnp.zeros((problem.horizon, problem.width, problem.num_actions), jnp.float32)
        memory = () if optimizer is None else optimizer.init(logits)
        return PolicyGradientState(logits, memory, jnp.float32(0), jnp.int32(0))

    def descend(gradient: Array, memory: Any, logits: Array) -> tuple[Array, Any]:
        assert optimizer is not None
        return optimizer.update(-gradient, memory, logits)

    def update(
        state: PolicyGradientState,
        policy: Array,
        feedback: BanditFeedback,
        constants: Any,
    ) -> PolicyGradientState:
        """A step of ascent, and the baseline; the constants are the parameters."""
        lanes = state.baseline.shape
        chex.assert_shape(feedback.total, lanes)
        total = feedback.total.astype(jnp.float32)
        surprise = total - state.baseline
        rate, memory = constants.get("learning_rate", 1.0), state.memory
        # Optimizers and schedules are others' code, which knows no lanes.
        if schedule is not None:
            with _default_promotion():
                rate = _in_each(lanes, schedule)(state.episodes).astype(jnp.float32)
        gain = jnp.broadcast_to(rate * surprise, (*state.logits.shape[:2], *lanes))
        step = score_gradient(state.logits, policy, gain)
        if optimizer is not None:
            with _default_promotion():
                step, memory = _in_each(lanes, descend)(step, memory, state.logits)
        episodes = state.episodes + 1
        weight = jnp.maximum(1 - constants["baseline_decay"], 1 / episodes.astype(jnp.float32))
        return state._replace(
            logits=state.logits + step.astype(jnp.float32),
            memory=memory,
            baseline=state.baseline + weight * surprise,
            episodes=episodes,
        )

    return init, update


def _in_each(lanes: tuple[int, ...], function: Callable) -> Callable:
    """The function in every lane, of arguments and results with trailing lanes."""
    for _ in lanes:
        function = jax.vmap(function, in_axes=-1, out_axes=-1)
    return function


# Product distributions over policies: a softmax at every state, drawn from and differentiated.


def _by_action(table: Array) -> list[Array]:
    """[H, k, *lanes] of each action."""
    return [table[:, :, a] for a in range(table.shape[2])]


@separate
def _weights(logits: Array) -> Array:
    """exp(theta - max theta) [H, k, A, *lanes]."""
    top = reduce(jnp.maximum, _by_action(logits))
    return jnp.exp(logits - top[:, :, None])


@separate
def _shares(weights: Array) -> Array:
    return weights / reduce(jnp.add, _by_action(weights))[:, :, None]


@together
def softmax(logits: Array) -> Array:
    """Probabilities [H, k, A, *lanes] of logits.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax(jnp.zeros((1, 1, 2))).tolist()
        [[[0.5, 0.5]]]
    """
    return _shares(_weights(logits))


@separate
def _picked(weights: Array, words: Array) -> Array:
    """The action int32 [H, k, *lanes] whose share of the weights a word falls into."""
    first, *others = _by_action(weights)
    target = unit_float32(words) * reduce(jnp.add, others, first)
    passed, action = first, jnp.zeros(target.shape, jnp.int32)
    for weight in others:
        action = action + (target >= passed).astype(jnp.int32)
        passed = passed + weight
    return action


@together
def _draw(logits: Array, words: Array) -> Array:
    return _picked(_weights(logits), words)


@cache
def _words(shape: tuple[int, ...]):
    """`table_words` as a kernel of its own: made where they are read, XLA would make them one by one."""
    return separate(lambda key: table_words(key, shape))


def drawn_policy(logits: Array, key: Array) -> Array:
    """A policy int32 [H, k+1, *lanes] with an action from the softmax at every state, independently; action 0 at level 0.

    A state's word goes by its place, whatever the table's sizes.
    """
    action = _draw(logits, _words(logits.shape[:2])(key))
    return jnp.concatenate([jnp.zeros_like(action[:, :1]), action], axis=1)


@separate
def _less(played: Array, shares: Array, gain: Array) -> Array:
    action = jax.lax.broadcasted_iota(jnp.int32, shares.shape, 2)
    return gain[:, :, None] * ((played[:, :, None] == action).astype(shares.dtype) - shares)


@together
def score_gradient(logits: Array, policy: Array, gain: Array) -> Array:
    """gain (e_policy - softmax(theta)) [H, k, A, *lanes], for a policy int32 [H, k+1, *lanes] and gains [H, k, *lanes]."""
    return _less(policy[:, 1:], _shares(_weights(logits)), gain)
