"""What the functions of a learner lower to, each for one lane: the identity of a learner at given sizes.

Engines vectorise these functions over lanes, so two learners whose functions lower to the same texts are one program.
Constants are made on the host and are arguments of the program: their bytes are no part of it, their shapes are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks.loop import check_shapes
from jaxbandit.engines.runner import Runner, check_metric
from jaxbandit.engines.tables import metric_worlds
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learner import check_steps, named
from jaxbandit.xla.compat import settled, x64
from jaxbandit.xla.lowering import Lowered, lower
from jaxbandit.xla.platforms import tracing_for


def lower_functions(runner: Runner) -> dict[str, Lowered]:
    """The functions that a runner calls, by name: init, feedback, act, update (or next_block, absorb), report, "metric ..."."""
    steps = _episode_steps if runner.engine == "episodes" else _block_steps
    with settled(), tracing_for(runner.platform):
        with x64():
            function, args = runner.first_lanes(1)
            init = lower(function, *args)
            constants, state = jax.tree.map(_without_lane, (args[-1], init.out))
        feedback = _feedback(runner)
        found = {"init": init, "feedback": feedback}
        return found | steps(runner, state, constants, feedback.out)


def _feedback(runner: Runner) -> Lowered:
    """What an episode shows; also of block learners, whose sums are of this."""
    stages = runner.sizes[:1]
    whole, real = (jax.ShapeDtypeStruct(stages, dtype) for dtype in (jnp.int32, jnp.float32))
    episode = Trajectory(levels=whole, actions=whole, rewards=real, next_levels=whole)
    bits = jax.ShapeDtypeStruct((), jnp.uint32)
    with x64(False):
        return lower(lambda *args: observe(runner.rules.feedback, *args), episode, bits)


def _episode_steps(runner: Runner, state: Any, constants: Any, seen: Any) -> dict[str, Lowered]:
    rules = runner.rules
    with x64(False):
        try:
            state, constants = jax.tree.map(_in_32_bits, (state, constants))
            key = jax.eval_shape(lambda: jax.random.key(0))
            act = _lower(runner, "act", rules.act, state, key, constants)
            update = _lower(runner, "update", rules.update, state, act.out, seen, constants)
            metrics = _metrics(runner, state, act.out, constants, np.float32)
        except Exception:  # as the contract says it, where that is broken
            check_steps(rules, runner.sizes, constants, state)
            raise
    with x64():
        found = {"act": act, "update": update}
        return found | _report(runner, state) | metrics


def _block_steps(runner: Runner, state: Any, constants: Any, seen: Any) -> dict[str, Lowered]:
    del seen
    form = runner.form
    with x64():
        try:
            next_block = _lower(runner, "next_block", form.next_block, state, constants)
            episodes = next_block.out.episodes
            totals = jax.ShapeDtypeStruct(episodes.shape, jnp.float64)
            absorb = _lower(runner, "absorb", form.absorb, state, episodes, totals, constants)
            metrics = _metrics(runner, state, next_block.out.policy, constants, np.float64)
        except Exception:
            check_shapes(runner.name, form, state, constants, runner.sizes)
            raise
        found = {"next_block": next_block, "absorb": absorb}
        return found | _report(runner, state) | metrics


def _report(runner: Runner, state: Any) -> dict[str, Lowered]:
    report = runner.form.report
    return {} if report is None else {"report": _lower(runner, "report", report, state)}


def _metrics(
    runner: Runner, state: Any, policy: Any, constants: Any, real: Any
) -> dict[str, Lowered]:
    if not runner.metrics:
        return {}
    mdps = jax.tree.map(lambda x: x[:1], runner.mdps)
    blank = np.zeros((1, *policy.shape), policy.dtype)
    world = jax.tree.map(lambda x: _shape(x[0]), metric_worlds(mdps, blank, (), real))
    found = {}
    for name, metric in runner.metrics.items():

        def measured(state, world, constants, name=name, metric=metric):
            seen = world._replace(constants=constants)
            return check_metric(name, metric, metric(state, seen), seen)

        try:
            found[f"metric {name}"] = lower(measured, state, world, constants)
        except Exception as error:
            error.add_note(f"in metrics[{name!r}]")
            raise
    return found


def _lower(runner: Runner, name: str, function: Callable, *args: Any) -> Lowered:
    with named(runner.name, name):
        return lower(function, *args)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf))


def _without_lane(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _in_32_bits(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype))
