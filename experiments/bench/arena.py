"""Speed beside what people use: jaxbandit, Numba loops, NumPy and rlberry-scool on the same work,
in one run.

Instances are the paper's I1 (A = 5; H = 15, 20; k = 2, 3, 4), general MDPs with 4 to 100 states, RiverSwim,
FrozenLake 8x8 and nine arms. Everyone plays whole runs and
computes the exact regret of every episode (rlberry-scool: none). Contestants take turns, jaxbandit
in one process and its peers in another; times are medians over the rounds, ratios are medians of
the ratios within a round (peer /
jaxbandit: above 1 jaxbandit is faster). With one core, the processes are pinned to it and the time
is CPU time, which other programs disturb least (each row's ``busy`` is CPU time / wall time); with
all cores it is wall time, with a thread per core (jaxbandit: a tile of lanes each).

    python -m jaxbandit.experiments.bench.arena --quick
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from jaxbandit.checks import whole

from .cases import bandit_rows, expref_rows, scaling_rows, states_rows, ucbvi_rows
from .table import draw_states, format_table

PAPER = [(H, k, 5) for H in (15, 20) for k in (2, 3, 4)]
MOST = 10**9
"""Of anything that is counted."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """Measure speed beside Numba, NumPy and rlberry-scool (if installed); needs the extra
    `bench`."""

    quick: bool = False
    """Two of the six configurations and fewer episodes: about four minutes instead of twelve."""
    scaling: bool = False
    """Measure instead how the cost grows with lanes, H, k, A and T."""
    states: bool = False
    """Measure instead only MDPs with many states: general ones, RiverSwim and FrozenLake 8x8."""
    bandits: bool = False
    """Measure instead only UCB1 and Thompson sampling on nine arms."""
    gpu_launches: bool = False
    """Count instead what our programs would launch on an A100, by compiling for one; needs the CUDA plugin (the extra
    `cuda12`) and no card."""
    one_core: bool = False
    """Leave out the measurements with all cores."""
    lanes: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 256)
    """How many runs jaxbandit does side by side."""
    num_episodes: int | None = None
    """T of the UCB-VI runs; default 8192, quick 2048. The time per episode hardly depends on it."""
    rounds: int = 3
    """How often everyone is measured."""
    output: Path = Path("bench.json")
    """File for the measurements."""
    overwrite: bool = False
    """Replace that file."""


class Worker:
    """A process that measures, pinned to some cores; see `bench_worker`."""

    def __init__(self, cores: Sequence[int]):
        """Starts the process."""
        command = [sys.executable, "-m", "jaxbandit.experiments.bench.worker"]
        threads = {
            name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        }
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
        )
        self._send(list(cores))

    def _send(self, value: Any) -> None:
        assert self.process.stdin is not None
        print(json.dumps(value), file=self.process.stdin, flush=True)

    def ask(self, request: Row) -> Row:
        """Has one round measured."""
        assert self.process.stdout is not None
        self._send(request)
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise OSError(
                f"the measuring process ended with code {code} at {request}; its error is above"
            )
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        self.process.wait()


class Arena:
    """Two processes on the same cores, jaxbandit's and its peers', that take turns."""

    def __init__(self, cores: Sequence[int], rounds: int):
        """Starts them."""
        self.cores, self.rounds = list(cores), rounds
        self.ours, self.theirs = Worker(cores), Worker(cores)

    def close(self) -> None:
        """Ends them."""
        self.ours.close()
        self.theirs.close()

    def compare(self, jobs: list[Row]) -> list[Row]:
        """Measures all jobs in turn, round after round: a row for each, with its times in every
        round.

        ``us`` is microseconds per episode and lane.
        """
        H, k, A = jobs[0]["size"][:3]
        cores = len(self.cores)
        print(
            f"{jobs[0]['learner']}, H={H} k={k} A={A}, cores: {cores}", file=sys.stderr, flush=True
        )
        rows = [{**job, "cores": cores, "us": [], "busy": []} for job in jobs]
        for number in range(self.rounds):
            for job, row in zip(jobs, rows, strict=True):
                reply = (self.ours if job["who"] == "jaxbandit" else self.theirs).ask(job)
                clock = "cpu_seconds" if cores == 1 else "seconds"
                row["us"].append(1e6 * reply[clock] / (job["lanes"] * job["num_episodes"]))
                row["busy"].append(reply["cpu_seconds"] / reply["seconds"])
                row["peak_bytes"] = max(row.get("peak_bytes", 0), reply["peak_bytes"])
                if number == 0 and "once_seconds" in reply:
                    row.update(
                        once_seconds=reply["once_seconds"], compile_seconds=reply["compile_seconds"]
                    )
        for row in rows:
            row["median_us"] = median(row["us"])
            row["episodes_per_second"] = 1e6 / row["median_us"]
        return rows


def run(options: Bench) -> dict[str, Any]:
    """All measurements: ``ucbvi``, ``expref``, ``states`` and ``bandits`` (or ``scaling``) are lists of rows.

    Example:
        >>> result = run(Bench(quick=True, one_core=True))  # doctest: +SKIP
        >>> print(format_table(result))  # doctest: +SKIP
    """
    import importlib.util

    for count in options.lanes:
        whole("lanes", count, at_most=MOST)
    whole("rounds", options.rounds, at_most=MOST)
    if options.num_episodes is not None:
        whole("num_episodes", options.num_episodes, at_most=MOST)
    if options.gpu_launches:
        from .launches import measure

        began = time.perf_counter()
        counts = measure()
        minutes = (time.perf_counter() - began) / 60
        return {"machine": machine(), "launches": counts, "minutes": minutes}
    if importlib.util.find_spec("numba") is None:
        raise ValueError("bench: numba is not installed; accepted: pip install 'jaxbandit[bench]'")
    began = time.perf_counter()
    episodes = options.num_episodes or (2_048 if options.quick else 8_192)
    sizes = [PAPER[0], PAPER[-1]] if options.quick else PAPER
    everything = range(os.cpu_count() or 1)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else everything
    part = options.scaling or options.states or options.bandits
    only_one = options.one_core or part or len(cores) == 1
    given = {
        key: str(value) if key == "output" else value for key, value in asdict(options).items()
    }
    result: dict[str, Any] = {"options": given, "machine": machine()}
    for chosen in [cores[-1:]] if only_one else [cores[-1:], cores]:
        with contextlib.closing(Arena(chosen, options.rounds)) as arena:
            if options.scaling:
                result["scaling"] = scaling_rows(arena, episodes, options.quick)
                continue
            if len(chosen) == 1 and not options.states:
                result["bandits"] = bandit_rows(arena, episodes)
            if options.bandits:
                continue
            if len(chosen) == 1:
                result["states"] = states_rows(arena, episodes, options.quick)
            if options.states:
                continue
            result.setdefault("ucbvi", []).extend(ucbvi_rows(arena, sizes, options.lanes, episodes))
            result.setdefault("expref", []).extend(
                expref_rows(arena, sizes, options.lanes, episodes, options.quick)
            )
    result["minutes"] = (time.perf_counter() - began) / 60
    return result


def machine() -> Row:
    """What the numbers depend on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("jaxbandit", "jax", "jaxlib", "numba", "numpy", "rlberry-scool"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load": load,
            "python": platform.python_version(), "versions": versions}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: measures, prints the tables, writes the JSON file."""
    import tyro

    settings = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    options = tyro.cli(Bench, prog="jaxbandit bench", args=arguments, config=settings)
    if options.output.exists() and not options.overwrite:
        raise FileExistsError(
            f"output: {options.output} exists; accepted: a new file, or --overwrite"
        )
    result = run(options)
    print(format_table(result))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"all measurements: {options.output}")
    if "states" in result:
        figure = options.output.with_suffix(".svg")
        draw_states(result["states"], figure)
        print(f"time against states: {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
