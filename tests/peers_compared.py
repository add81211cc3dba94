"""How peers of the benchmark are compared: by the means over seeds of one small instance.

|z| < 4.5 has a false-alarm rate of 7e-6 each (normal approximation), with fixed seeds.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.engines import make_runner

LIMIT = 4.5
PRACTICAL = {
    "episodes_scale": 1 / 12, "first_epsilon": 0.5, "ratio": 0.5**0.5, "num_phases": 4, "threshold": 0.2,
}  # fmt: skip
MDP = jb.make_instance("prophet-random", key=jax.random.key(3), horizon=4, capacity=2, num_values=3)


def z_score(x, y):
    """Welch's z for the means of independent samples x and y, or of x against the number y.

    One part in 1e6 is allowed for rounding to float32, which is all the spread there is before any
    luck.
    """
    spread = np.var(x, ddof=1) / len(x) + (np.var(y, ddof=1) / len(y) if np.ndim(y) else 0)
    return abs(np.mean(x) - np.mean(y)) / math.sqrt(spread + (1e-6 * np.mean(y)) ** 2)


def engine_regret(engine, learner, mdp, num_episodes, points, num_seeds):
    """Regret [S, W] of a jaxbandit learner."""
    one = jax.tree.map(lambda x: jnp.asarray(x)[None], mdp)
    params = {name: np.asarray(value)[None] for name, value in learner.params.items()}
    learner = learner._replace(params=params)
    keys = jax.vmap(lambda s: jax.random.fold_in(jax.random.key(11), s))(jnp.arange(num_seeds))[
        None
    ]
    runner = make_runner(engine, learner, one, keys, num_episodes, np.asarray(points))
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner.result(carry)["regret"][0]
