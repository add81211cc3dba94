"""Product distributions over policies: a softmax at every state, drawn from and differentiated.

Arrays are [stage, level, action, *lanes], level 0 left out (no action matters there): lanes are side by side in trailing
axes, or there are none. Sums over actions are written out, because XLA on CPU hands reductions to a library that is slow
for a few numbers; and exponentials are arrays in memory (`separate`), because it would compute them again for each use.
"""

from __future__ import annotations

from functools import cache, reduce

import jax
import jax.numpy as jnp

from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate, together
from jaxbandit.xla.threefry import table_words, unit_float32


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
