"""Lanes of several sizes in one program, and the same lanes each in its own, for the tests of padding."""

from dataclasses import replace

import jax
import numpy as np
from lanes_by_hand import stack

import jaxbandit as jb
from jaxbandit.engines import grown, make_runner
from jaxbandit.xla import platforms

ROOM = (5, 4)
OWN = ((3, 2), (5, 4), (1, 1))
SHORT = {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}
LEARNERS = {
    "ucbvi": {},
    "uniform": {},
    "oracle": {},
    "policy-gradient": {},
    "q-learning": {},
    "ucbvi-doubling": {},
    "psrl": {},
    "aggregate-po": {},
    "expref": SHORT,
    "ordered-expref": SHORT,
}
"""All that can be padded."""


def small_gpu(monkeypatch):
    """The choices of a GPU in a tile that a test can afford."""
    found = replace(platforms.GPU, lanes=8, chunk=64)
    monkeypatch.setitem(platforms.KNOWN, "gpu", found)
    return found


def instance(own, seed=0):
    H, k = own
    key = jax.random.key(10 * H + k + seed)
    return jb.make_instance("prophet-random", key=key, horizon=H, capacity=k, num_values=3)


def run(learner, owns, padded, num_episodes=100, seeds=3, metrics=None):
    """The runner after the last episode and its results, leaves [instance, seed, ...]; on the episode engine, as on a GPU."""
    mdps = [instance(own) for own in owns]
    if padded:
        mdps = [grown(mdp, ROOM) for mdp in mdps]
    params = {
        name: np.repeat(np.asarray(value)[None], len(owns), 0)
        for name, value in learner.params.items()
    }
    root = jax.random.key(4)
    keys = jax.vmap(
        lambda name: jax.vmap(lambda s: jax.random.fold_in(jax.random.fold_in(root, name), s))(
            np.arange(seeds, dtype=np.uint32)
        )
    )(np.asarray([10 * H + k for H, k in owns], np.uint32))
    runner = make_runner(
        "episodes",
        learner._replace(params=params),
        stack(*mdps),
        keys,
        num_episodes,
        np.asarray([1, 50, num_episodes]),
        platform="gpu",
        metrics=metrics,
        own=owns if padded else None,
    )
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner, runner.result(carry)
