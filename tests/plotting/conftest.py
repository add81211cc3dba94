"""What the tests of figures of states draw: a made-up sweep and a small MDP."""

import jax.numpy as jnp
import pytest
from synthetic_sweep import synthetic_sweep

from jaxbandit.mdp import MDP


@pytest.fixture(scope="session")
def ds():
    return synthetic_sweep()


@pytest.fixture(scope="session")
def mdp():
    """Two stages, two levels; action 1 pays and falls one level, action 0 stays; start at level
    2."""
    prob = jnp.ones((2, 3, 2, 1))
    levels = jnp.arange(3, dtype=jnp.int32)
    fall = jnp.stack([levels, jnp.maximum(levels - 1, 0)], axis=-1)  # [level, action]
    pay = jnp.where((levels > 0)[:, None] & (jnp.arange(2) == 1)[None], 0.5, 0.0)
    both = lambda x: jnp.broadcast_to(x[None, :, :, None], (2, 3, 2, 1))  # noqa: E731
    return MDP(prob, both(pay), both(fall), None, jnp.int32(2))
