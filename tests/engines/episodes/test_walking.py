"""The smallest sizes there are: XLA ends the process where simplifying them leaves a kernel with unused arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import copies, general, sizes_of, some_policy

import jaxbandit as jb
from jaxbandit.engines.episodes.simulation import simulate
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


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 2, 2, 2), (2, 1, 2, 1), (2, 2, 1, 2)])
@pytest.mark.parametrize("learner", ["ucbvi", "policy-gradient"])
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


def test_the_path_is_that_of_the_straight_program():
    """The same words lead the same way, whether a CPU walks or the links are cut."""
    mdp = general(2)
    policy = jnp.asarray(np.repeat(some_policy(mdp, randomised=False)[..., None], 16, axis=-1))
    args = (copies(mdp, 16), policy, jax.random.bits(jax.random.key(7), (3, 16), jnp.uint32))

    def play(platform):
        def run(*args):
            return simulate(sizes_of(mdp), *args)

        program, _ = Programs().get("play", run, args, jax.devices()[0], platform)
        return program(*args)

    for one, other in zip(play(CPU), play(GPU), strict=True):
        np.testing.assert_array_equal(one, other)
