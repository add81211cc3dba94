"""Episodes for tests of learners, drawn on the host, and all possible ones with their probabilities; how a learner begins."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import Trajectory
from jaxbandit.learner import make_constants


def begin(learner, problem, key=None):
    """The first state and the constants."""
    constants = jax.tree.map(jnp.asarray, make_constants(learner, problem, learner.params))
    return learner.init(problem, constants, key), constants


def as_trajectory(rows):
    """Rows (level, action, reward, next level), one a stage."""
    levels, actions, rewards, following = zip(*rows, strict=True)
    return Trajectory(
        jnp.asarray(levels, jnp.int32),
        jnp.asarray(actions, jnp.int32),
        jnp.asarray(rewards, jnp.float32),
        jnp.asarray(following, jnp.int32),
    )


def every_episode(mdp, policy):
    """All (probability, rows) of a randomised policy [H, k+1, A]."""
    prob, reward, target = (np.asarray(x, float) for x in (mdp.prob, mdp.reward, mdp.next_level))
    paths = [(1.0, [], int(mdp.start))]
    for i in range(mdp.horizon):
        onward = []
        for chance, rows, level in paths:
            for a, m in itertools.product(range(mdp.num_actions), range(mdp.num_outcomes)):
                p = chance * policy[i, level, a] * prob[i, level, a, m]
                if p > 0:
                    following = int(target[i, level, a, m])
                    row = (level, a, reward[i, level, a, m], following)
                    onward.append((p, [*rows, row], following))
        paths = onward
    return [(chance, rows) for chance, rows, _ in paths]
