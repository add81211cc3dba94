"""A process that measures for `bench`: requests on stdin, replies on stdout, one JSON object per
line.

Flags of XLA and the number of threads must be set before jax starts, and a process is pinned to its
cores as a whole; so jaxbandit and its peers are measured in processes of their own, which the
benchmark asks in turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Size(NamedTuple):
    """An instance: the paper's I1 if it has no other name, with k of its levels."""

    horizon: int
    width: int
    num_actions: int = 5
    name: str = "prophet-uniform"


@lru_cache(maxsize=1)
def instance(size: Size) -> Any:
    """The MDP; "general" is one of k states, with three outcomes of an action that differ from stage to stage."""
    import jaxbandit as jb

    H, k, A, name = size
    if name == "riverswim":
        return jb.make_instance(name, num_states=k, horizon=H)
    if name == "frozen-lake":
        return jb.make_instance(name, map_name="8x8", horizon=H)
    if name == "bandit":
        return jb.make_instance(name, means=np.linspace(0.1, 0.9, A))
    if name == "prophet-uniform":
        return jb.make_instance(name, horizon=H, capacity=k, num_values=A)
    random, shape = np.random.default_rng(k), (H, k + 1, A, 3)
    reward, next_level = random.random(shape) / H, random.integers(1, k + 1, shape)
    reward[:, 0] = next_level[:, 0] = 0
    return jb.MDP(
        prob=random.dirichlet(np.ones(3), shape[:3]).astype(np.float32),
        reward=reward.astype(np.float32),
        next_level=next_level.astype(np.int32),
        start=np.int32(1),
        rank=None,
    )


@lru_cache(maxsize=8)
def jaxbandit_runs(
    size: Size, learner: str, engine: str, lanes: int, num_episodes: int, workers: int | None
) -> tuple[Callable, dict[str, float]]:
    """All lanes from the first episode to T, as a function to be timed, and what it cost to
    prepare.

    Without ``workers``, as many tiles run at a time as there are cores. ``once_seconds`` is all that
    is paid once: tracing, compilation, and the first states.
    """
    import jax
    import jax.numpy as jnp

    import jaxbandit as jb
    from jaxbandit.engines import make_runner

    began = time.perf_counter()
    runner: Any
    made = jb.make_learner(learner)
    made = made._replace(
        params={name: np.asarray(value)[None] for name, value in made.params.items()}
    )
    mdps = jax.tree.map(lambda x: jnp.asarray(x)[None], instance(size))
    keys = jax.random.split(jax.random.key(0), (1, lanes))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    whole = num_episodes if engine == "episodes" else None  # a tile to its end, as in sweeps
    runner = make_runner(
        engine,
        made,
        mdps,
        keys,
        num_episodes,
        np.array([num_episodes]),
        chunk_size=whole,
        workers=workers or cores or 1,
    )
    first = runner.start()

    def run() -> None:
        carry = first
        while runner.episodes_done(carry) < num_episodes:
            carry = runner.step(carry)

    runner.step(first)
    once = time.perf_counter() - began - runner.run_seconds
    return run, {"once_seconds": once, "compile_seconds": runner.compile_seconds}


@lru_cache(maxsize=1)
def peer_tables(size: Size) -> Any:
    """The instance as the peers take it."""
    from .peers_numpy import tables

    return tables(instance(size))


@lru_cache(maxsize=8)
def peer_runs(
    size: Size, peer: str, learner: str, lanes: int, num_episodes: int, threads: int
) -> Callable:
    """``lanes`` runs of a peer from the first episode to T, as a function to be timed; compiled
    already."""
    from . import peers, peers_bandits, peers_numpy

    tables = peer_tables(size)
    seeds, more = np.arange(lanes), {"threads": threads} if peer == "numba" else {}
    module: Any = peers if peer == "numba" else peers_numpy
    if peer == "rlberry":

        def runs(num_episodes: int, seeds: np.ndarray) -> None:
            for seed in seeds:
                peers.rlberry_ucbvi(tables, num_episodes, int(seed))

    elif learner == "ucbvi":

        def runs(num_episodes: int, seeds: np.ndarray) -> None:
            module.ucbvi(tables, num_episodes, [num_episodes], seeds, **more)

    elif learner in ("ucb1", "thompson"):

        def runs(num_episodes: int, seeds: np.ndarray) -> None:
            peers_bandits.bandit(learner, tables, num_episodes, [num_episodes], seeds, **more)

    else:
        plan = peers_numpy.schedule(tables, num_episodes, ordered=learner == "ordered-expref")

        def runs(num_episodes: int, seeds: np.ndarray) -> None:
            module.expref(tables, num_episodes, [num_episodes], seeds, plan, **more)

    runs(10, seeds[:1])
    return lambda: runs(num_episodes, seeds)


def answer(
    size: list[Any],
    who: str,
    learner: str,
    lanes: int,
    num_episodes: int,
    engine: str = "",
    threads: int = 1,
    workers: int | None = None,
) -> dict[str, Any]:
    """Times one round of ``lanes`` runs of T episodes each, of jaxbandit or of a peer."""
    forget_peak()
    facts: dict[str, float] = {}
    if who == "jaxbandit":
        run, facts = jaxbandit_runs(Size(*size), learner, engine, lanes, num_episodes, workers)
    else:
        run = peer_runs(Size(*size), who, learner, lanes, num_episodes, threads)
    began, began_cpu = time.perf_counter(), time.process_time()
    run()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes(), **facts}


def forget_peak() -> None:
    """Starts a new measurement of peak memory, where the system can."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_bytes() -> int:
    """Peak resident memory since `forget_peak`, or of the whole process where the system cannot
    say."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Pins itself to the cores of the first line, then answers requests until stdin ends."""
    from jaxbandit.xla.compilations import start_jax

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print must not mix with the replies
    cores = json.loads(sys.stdin.readline())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    start_jax("none")
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            print(json.dumps(answer(**json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
