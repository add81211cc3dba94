"""What a learner may play: a table of actions, int [H, k+1, W], or of action probabilities, float [H, k+1, A, W].

Shapes and types are known before anything runs. Values are checked on the device where they are used: an action out of
range, or probabilities that are negative, nan or do not sum to 1, make the regret of that episode nan (`regrets`), and
a nan never becomes a result: the host finds the episode and then the place (`explain`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.errors import LearnerError
from jaxbandit.learner.fitting import is_policy, wrong_policy
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate


class PolicyForm:
    """The kind of policies that a learner plays on MDPs of one size."""

    def __init__(self, name: str, sizes: Any, policy: Any):
        """``policy`` is one with lanes last, or its shape: a wrong shape or type is an error at once."""
        H, k, A = sizes[:3]
        self.horizon, self.num_actions = H, A
        self.randomised = not jnp.issubdtype(policy.dtype, jnp.integer)
        wanted = (H, k + 1, A) if self.randomised else (H, k + 1)
        seen = tuple(policy.shape[:-1])
        if (self.randomised and not jnp.issubdtype(policy.dtype, jnp.floating)) or seen != wanted:
            raise LearnerError(
                f"learner {name!r}: act gives {policy.dtype}{list(seen)}; accepted: actions, integers "
                f"[H, k+1] = {[H, k + 1]}, or probabilities, floats [H, k+1, A] = {[H, k + 1, A]}"
            )
        self.packed_type = jnp.int8 if A < 127 else jnp.int32

    def numbers(self, policy: Array) -> jax.Array:
        """What the learner gave, as the engine computes with it: int32 or float32. Sums of half floats would be
        rounded to 1, and bounds such as -1 have no meaning in unsigned types."""
        return jnp.asarray(policy).astype(jnp.float32 if self.randomised else jnp.int32)

    def by_levels(self, policy: Array) -> jax.Array:
        """Actions [k+1, HW], so that kernels run over stages and lanes as one axis; probabilities as they are."""
        if self.randomised:
            return policy
        return jnp.moveaxis(policy, 1, 0).reshape(policy.shape[1], -1)

    def from_levels(self, policy: Array) -> jax.Array:
        """What `by_levels` has taken apart."""
        if self.randomised:
            return policy
        return jnp.moveaxis(policy.reshape(policy.shape[0], self.horizon, -1), 0, 1)

    def packed(self, policy: Array) -> jax.Array:
        """The actions [k, HW] from level 1 on in few bytes; those out of range become -1 or A. Probabilities as they are."""
        if self.randomised:
            return policy
        return _pack(self.num_actions, self.packed_type)(self.by_levels(policy)[1:])

    def unpacked(self, policies: Array, lanes: int) -> jax.Array:
        """Packed actions [E, k, HW] as [E, k, H, W]."""
        return policies.reshape(*policies.shape[:2], self.horizon, lanes)


@cache
def _pack(num_actions: int, packed_type: Any):
    @separate
    def pack(actions):
        return jnp.clip(actions, -1, num_actions).astype(packed_type)

    return pack


def explain(name: str, policy: np.ndarray, num_actions: int, episode: int) -> LearnerError:
    """The error for a policy [H, k+1] or [H, k+1, A] that is none, of an episode that counts from 1."""
    if not np.asarray(is_policy(jnp.asarray(policy), num_actions)).all():
        return wrong_policy(name, policy, num_actions, episode)
    return LearnerError(
        f"learner {name!r}: the regret of episode {episode} is not a number, though its policy is "
        "one; accepted: MDPs and learners whose numbers are finite"
    )
