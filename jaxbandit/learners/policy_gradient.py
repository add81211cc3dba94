"""Policy gradient under bandit feedback: what a practitioner would try first.

The policy of each episode is drawn from a product distribution: at stage i and level l = 1..k
action a with probability softmax(theta_{l,i})_a, independently. After an episode with policy pi and
total reward X,

    g_{l,i} = (X - b) (e_{pi(l,i)} - softmax(theta_{l,i}))

is an unbiased estimate of the gradient of the expected total reward (REINFORCE, Williams 1992),
because the baseline b is made of earlier episodes: a running mean that forgets at the rate
``1 - baseline_decay``. An optax transformation turns g into a step of ascent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.softmax import drawn_policy, score_gradient
from jaxbandit.specs import Real, as_params, takes
from jaxbandit.types import Array

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


class PolicyGradientConstants(NamedTuple):
    """The hyper-parameters; with an optimizer or a schedule, ``rate`` is not read."""

    rate: Array
    """float32 []: the learning rate, if it is a number."""
    decay: Array
    """float32 []: ``baseline_decay``."""
    there: Array
    """float32 [H, k]: 1 at every state; 0 at those that a padded MDP does not have, where nothing is learned."""


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
    return Learner(
        init=init,
        act=act,
        update=update,
        name="policy-gradient",
        constants=constants,
        **as_params(SPECS, **given),
    )


def _is_transformation(value: Any) -> bool:
    return callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))


def constants(problem: Problem, params: Any) -> PolicyGradientConstants:
    """The learning rate and the baseline's decay."""
    return PolicyGradientConstants(
        rate=np.float32(params.get("learning_rate", 1.0)),
        decay=np.float32(params["baseline_decay"]),
        there=np.ones((problem.horizon, problem.width), np.float32),
    )


def act(state: PolicyGradientState, key: Array, constants: PolicyGradientConstants) -> Array:
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
        constants: PolicyGradientConstants,
    ) -> PolicyGradientState:
        lanes = state.baseline.shape
        chex.assert_shape(feedback.total, lanes)
        total = feedback.total.astype(jnp.float32)
        surprise = total - state.baseline
        rate, memory = constants.rate, state.memory
        # Optimizers and schedules are others' code, which knows no lanes.
        if schedule is not None:
            with _default_promotion():
                rate = _in_each(lanes, schedule)(state.episodes).astype(jnp.float32)
        gain = (rate * surprise)[None, None] * constants.there
        step = score_gradient(state.logits, policy, gain)
        if optimizer is not None:
            with _default_promotion():
                step, memory = _in_each(lanes, descend)(step, memory, state.logits)
        episodes = state.episodes + 1
        weight = jnp.maximum(1 - constants.decay, 1 / episodes.astype(jnp.float32))
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
