"""What a GPU would run, counted without one: ``jaxbandit bench --gpu-launches``.

XLA compiles for a card that is not there: it takes the CUDA plugin of jaxlib's version (the extra ``cuda12``) and a
description of the card (``a100.txtpb``). The optimised program is read for what costs time: kernels that each turn of
a loop launches, loops and branches whose turns only the device knows, so that the host must wait for an answer, bytes
that the kernels read and write, operations in float64. *Counted, not timed*: no number here was measured on a card.

`count_program` counts any function; `CASES` are the programs of the table. An episode's share of what a stretch of
episodes does once (random words, regrets) is counted with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .hlo import Loop, loops_of
from .worker import Size, instance

DESCRIPTION = Path(__file__).parent / "a100.txtpb"
COSTS = ("launches", "syncs", "inner", "bytes", "float64")
SETTINGS = {"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
FLAGS = "--xla_gpu_autotune_level=0"
"""Tuning would run kernels, for which there is no card."""


@dataclass(frozen=True)
class Case:
    """A program of the table."""

    learner: str
    engine: str
    size: tuple[Any, ...]
    """H, k, A of the paper's I1; or of another instance, with its name."""
    before: int | None = None
    """Launches as first written, for CPUs alone: a constant, counted then in the same way with jax 0.10.2."""
    goal: int | None = None
    """Launches at most."""


CASES = (
    Case("ucbvi", "episodes", (15, 2, 5), before=709, goal=12),
    Case("ucbvi", "episodes", (20, 4, 5), before=1135, goal=20),
    Case("ucbvi", "episodes", (20, 25, 4, "general")),
    Case("ucbvi", "episodes", (20, 100, 4, "general")),
    Case("expref", "episodes", (15, 2, 5), before=189),
    Case("policy-gradient", "episodes", (15, 2, 5), before=92, goal=20),
    Case("expref", "blocks", (15, 2, 5), before=691, goal=12),
    Case("expref", "blocks", (20, 4, 5), goal=12),
    Case("ordered-expref", "blocks", (20, 4, 5), goal=12),
)


@dataclass(frozen=True)
class Count:
    """A compiled program, and its loops from the outside in."""

    loops: tuple[Loop, ...]
    temp_bytes: int
    """Memory that the program needs beside its arguments and results."""
    argument_bytes: int
    compile_seconds: float
    """On the clock; and of processor time, which does not depend on what else the machine does."""
    compile_cpu_seconds: float

    def step(self, steps: int) -> dict[str, float]:
        """One step of the count machine: a round of so many is the innermost loop of known turns, each one or several."""
        found = [loop for loop in self.loops if loop.trips is not None]
        if not found:
            raise ValueError(
                f"steps: {steps}; accepted: those of a loop of known turns, {self.loops}"
            )
        depth = max(loop.depth for loop in found)
        loop = max((x for x in found if x.depth == depth), key=lambda x: x.launches)
        return _costs(loop, (loop.trips or 1) / steps)

    def episode(self, stretch: int) -> dict[str, float]:
        """One episode: its share of a stretch, which is a turn of the outermost loop and has no loop but that over its
        episodes."""
        outer = max((x for x in self.loops if x.depth == 0), key=lambda x: x.launches)
        return {**_costs(outer, 1 / stretch), "inner": outer.inner - 1}


def _costs(loop: Loop, share: float) -> dict[str, float]:
    return {name: share * getattr(loop, name) for name in COSTS}


def count_program(function: Callable, args: tuple, platform: str = "gpu") -> Count:
    """Compiles ``function(*args)`` for the card, with the choices of a platform, and counts.

    Needs the CUDA plugin, and the settings that `main` makes before jax starts.
    """
    import jax
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import NamedSharding, PartitionSpec

    from jaxbandit.xla.platforms import KNOWN, tracing_for

    card = topologies.get_topology_desc(
        platform="cuda", target_config=DESCRIPTION.read_text(encoding="utf-8"), topology="1x1x1"
    )
    mesh = topologies.make_mesh(topo=card, mesh_shape=(1,), axis_names=("lanes",))
    where = NamedSharding(mesh, PartitionSpec())

    def described(x: Any) -> Any:
        return jax.ShapeDtypeStruct(np.shape(x), jax.numpy.result_type(x), sharding=where)

    began, worked = time.perf_counter(), time.process_time()
    with tracing_for(KNOWN[platform]):
        compiled = jax.jit(function).lower(*jax.tree.map(described, args)).compile()
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    memory: Any = compiled.memory_analysis()
    return Count(
        loops=tuple(loops_of(compiled.as_text() or "")),
        temp_bytes=int(memory.temp_size_in_bytes) if memory else 0,
        argument_bytes=int(memory.argument_size_in_bytes) if memory else 0,
        compile_seconds=seconds,
        compile_cpu_seconds=processor,
    )


def captured(case: Case, platform: str = "gpu", lanes: int = 1) -> tuple[Callable, tuple]:
    """The function and the arguments that a runner hands to its device at its first step."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxbandit as jb
    from jaxbandit.engines import make_runner

    mdp = instance(Size(*case.size))
    learner = jb.make_learner(case.learner)
    learner = learner._replace(
        params={name: np.asarray(value)[None] for name, value in learner.params.items()}
    )
    keys = jax.random.split(jax.random.key(0), (1, lanes))
    stacked = jax.tree.map(lambda x: jnp.asarray(x)[None], mdp)
    T = 2_000_000
    runner: Any = make_runner(
        case.engine, learner, stacked, keys, T, np.array([T]), platform=platform
    )
    carry = runner.start()
    found: list[tuple[Callable, tuple]] = []

    class EnoughError(Exception):
        """The first program is all that is wanted."""

    def execute(name: Any, function: Callable, args: tuple, *rest: Any, **more: Any) -> None:
        found.append((function, args))
        raise EnoughError

    runner.execute = execute
    with contextlib.suppress(EnoughError):
        runner.step(carry)
    return found[0]


def count_case(case: Case) -> dict[str, Any]:
    """A row of the table."""
    from jaxbandit.engines.episodes.loop import STRETCH
    from jaxbandit.xla.compat import x64
    from jaxbandit.xla.platforms import GPU

    blocks = case.engine == "blocks"
    with x64(blocks):
        count = count_program(*captured(case))
    return {
        **asdict(case),
        "per": "step" if blocks else "episode",
        "lanes": GPU.block_lanes if blocks else GPU.lanes,
        **(count.step(GPU.steps) if blocks else count.episode(STRETCH)),
        "temp_bytes": count.temp_bytes,
        "argument_bytes": count.argument_bytes,
        "compile_seconds": count.compile_seconds,
        "compile_cpu_seconds": count.compile_cpu_seconds,
        "loops": [asdict(loop) for loop in count.loops],
    }


def measure() -> list[dict[str, Any]]:
    """All rows, counted in a process of its own, whose jax starts with the settings that this takes."""
    import importlib.util

    if importlib.util.find_spec("jax_plugins") is None:
        raise ValueError(
            "gpu_launches: jax has no CUDA plugin here; accepted: pip install 'jaxbandit[cuda12]' "
            "(no card is needed)"
        )
    command = [sys.executable, "-m", "jaxbandit.experiments.bench.launches"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=settings())
    if done.returncode:
        raise OSError(f"the counting process ended with code {done.returncode}; its error is above")
    return json.loads(done.stdout)


def settings() -> dict[str, str]:
    """The environment in which jax can compile for a card that is not there."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()
    return {**os.environ, **SETTINGS, "XLA_FLAGS": flags}


def main() -> None:
    """Counts all cases and prints their rows as JSON."""
    rows = []
    for case in CASES:
        H, k = case.size[:2]
        print(f"compiling {case.learner}, {case.engine}, H={H} k={k}", file=sys.stderr, flush=True)
        rows.append(count_case(case))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
