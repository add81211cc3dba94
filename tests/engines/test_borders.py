"""Assertions of shapes at the borders of the engines: what does not fit is refused, and programs are the same
with and without them."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import stack

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.episodes import loop
from jaxbandit.engines.episodes.world import make_episode_world
from jaxbandit.engines.runner import Runner
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.xla import platforms
from jaxbandit.xla.compat import x64

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


class LoweredError(Exception):
    """Carries a program's text out of a runner."""


def texts(engine, name, monkeypatch):
    """The StableHLO of an engine's main program, with assertions and without."""
    learner = jb.make_learner(name)
    learner = learner._replace(params={n: np.asarray(v)[None] for n, v in learner.params.items()})
    keys = jax.random.split(jax.random.key(5), (1, 2))
    execute = Runner.execute

    def watched(self, label, function, args, *rest, **more):
        if label[0] != engine:
            return execute(self, label, function, args, *rest, **more)
        with platforms.tracing_for(self.platform), x64(engine == "blocks"):
            raise LoweredError(jax.jit(partial(function)).lower(*args).as_text())

    monkeypatch.setattr(Runner, "execute", watched)
    found = []
    for asserted in (True, False):
        jax.clear_caches()  # parts that were traced are kept otherwise
        (chex.enable_asserts if asserted else chex.disable_asserts)()
        try:
            runner = make_runner(engine, learner, stack(MDP), keys, 64, np.asarray([64]))
            with pytest.raises(LoweredError) as seen:
                runner.step(runner.start())
        finally:
            chex.enable_asserts()
        found.append(str(seen.value))
    return found


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("episodes", "ucbvi"),
        ("episodes", "q-learning"),
        ("episodes", "expref"),
        ("blocks", "expref"),
    ],
)
def test_assertions_cost_nothing(engine, name, monkeypatch):
    """Shapes are looked at while a program is traced: what is compiled is the same text."""
    asserted, plain = texts(engine, name, monkeypatch)
    assert "stablehlo.while" in plain
    assert asserted == plain


def test_tables_of_other_lanes_are_refused():
    world = make_episode_world(stack(MDP, MDP))
    sizes = loop.Sizes(3, 2, 3, MDP.num_outcomes)
    keys = (jnp.zeros(2, jnp.uint32),) * 2
    loop.check_lanes(sizes, loop.Lanes(world, keys, ()))
    alone = (jnp.zeros(1, jnp.uint32),) * 2  # it would be broadcast
    with pytest.raises(AssertionError, match=r"has shape"):
        loop.check_lanes(sizes, loop.Lanes(world, alone, ()))
    with pytest.raises(AssertionError, match=r"has shape"):
        loop.check_lanes(sizes._replace(num_actions=4), loop.Lanes(world, keys, ()))


def test_episodes_of_unequal_arrays_are_refused():
    path = jnp.zeros((3, 4), jnp.int32)
    episode = Trajectory(path, path, jnp.zeros((3, 1)), path)
    with pytest.raises(AssertionError, match="shape"):
        observe("trajectory", episode)
