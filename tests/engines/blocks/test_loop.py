"""The loop over blocks: exact regrets of arms, exact beginnings up to 2^53."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import arms, compose

import jaxbandit as jb
from jaxbandit.engines.blocks import loop
from jaxbandit.engines.blocks.loop import arm_regrets
from jaxbandit.xla.compat import x64


@pytest.mark.parametrize("ordered", [False, True])
def test_regrets_of_arms_are_those_of_the_composed_policies(ordered):
    name = "random-ordered" if ordered else "random-general"
    mdp = jb.make_instance(name, key=jax.random.key(4), horizon=3, width=2, num_actions=2)
    with x64():
        exact = mdp._replace(
            prob=mdp.prob.astype(jnp.float64), reward=mdp.reward.astype(jnp.float64)
        )
        world = jb.gaps(exact), jb.transition_kernel(exact), exact.start
        regrets, regret = jax.jit(arm_regrets), jax.jit(jb.regret)
        for stage in range(3):
            block = jax.tree.map(
                jnp.asarray, arms(3, 3, 2, seed=stage)._replace(stage=np.int32(stage))
            )
            ours = np.asarray(regrets(*world, block))
            theirs = [float(regret(exact, jnp.asarray(compose(block, b)))) for b in range(3)]
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_beginnings_are_exact_up_to_two_to_the_53():
    most = 2.0**53
    with x64():
        begin = loop._begin(
            jnp.asarray([most - 7]), jnp.asarray([[3.0, most, 5.0, most]]), jnp.float64(most)
        )
    assert begin.tolist() == [[most - 7, most - 4, most, most]]
