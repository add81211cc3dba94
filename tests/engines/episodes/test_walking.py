"""The smallest sizes there are: XLA ends the process where simplifying them leaves a kernel with unused arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import copies, sizes_of

import jaxbandit as jb
from jaxbandit.engines.episodes.environment import (
    AT_ONCE,
    CUT_LINKS,
    LINKS,
    by_levels,
    simulate,
)
from jaxbandit.mdp import MDP
from jaxbandit.xla.platforms import CPU, GPU
from jaxbandit.xla.programs import Programs


def tiny(horizon, width, actions, outcomes):
    """An MDP whose outcomes are equally likely: the m-th pays and stays, the first goes down a level."""
    shape = (horizon, width + 1, actions, outcomes)
    level = np.broadcast_to(np.arange(width + 1)[None, :, None, None], shape)
    down = np.maximum(level - (np.arange(outcomes) == 0), 0)
    pay = np.broadcast_to(np.arange(outcomes) / (horizon * outcomes), shape) * (level > 0)
    return MDP(
        prob=jnp.full(shape, 1 / outcomes, jnp.float32),
        reward=jnp.asarray(pay, jnp.float32),
        next_level=jnp.asarray(down, jnp.int32),
        start=jnp.int32(width),
        rank=None,
    )


@pytest.mark.parametrize(
    ("sizes", "learner"),
    [
        *(((*sizes, 1), "ucbvi") for sizes in [(1, 1, 1), (2, 1, 2), (1, AT_ONCE + 1, 1)]),
        *(((*sizes, 2), "ucbvi") for sizes in [(1, 2, 2), (2, 2, 1)]),
        ((1, 1, 1, 1), "policy-gradient"),
        ((2, 2, 1, 2), "policy-gradient"),
    ],
)
def test_the_smallest_sizes_run(sizes, learner):
    ds = jb.sweep(
        learners={learner: jb.make_learner(learner)},
        instances={"tiny": tiny(*sizes)},
        num_episodes=40,
        num_seeds=2,
        progress=False,
    )
    regret = np.asarray(ds["regret"])
    assert np.isfinite(regret).all()
    assert (regret >= 0).all()


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 2, 3),
        (LINKS + 1, 1, 3, 2),
        (LINKS + 2, 2, 3, 4),
        (2 * LINKS + 2, AT_ONCE, 3, 4),
        (CUT_LINKS + 2, AT_ONCE + 1, 3, 4),
    ],
)
def test_the_path_is_that_of_the_straight_program(sizes):
    """The same words lead the same way on both platforms, whether all levels are looked up at once or not."""
    mdp = tiny(*sizes)
    random = np.random.default_rng(7)
    horizon, width, actions, _ = sizes
    policy = jnp.asarray(random.integers(0, actions, (horizon, width + 1, 16)), jnp.int32)
    words = jax.random.bits(jax.random.key(7), (horizon, 16), jnp.uint32)
    args = (copies(mdp, 16), policy, words)

    def play(platform):
        def run(*args):
            world, policy, words = args
            return simulate(sizes_of(mdp), world, by_levels(policy), words)

        return Programs().get("play", run, args, jax.devices()[0], platform).call(*args)

    for one, other in zip(play(CPU), play(GPU), strict=True):
        np.testing.assert_array_equal(one, other)
    levels = np.asarray(play(CPU).levels)
    assert horizon == 1 or (levels != levels[:, :1]).any()  # the lanes part on their way
