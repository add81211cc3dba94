"""The tables that `bench` prints, and its figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from jaxbandit.tabular import write_table

from .cases import LONG, SEEDS

Row = dict[str, Any]
LAUNCH_US = 2.5
"""What a launch costs that the host issues; about 1 where the driver replays a graph of launches."""
BANDWIDTH = 1.5552e12
"""Bytes per second of an A100's memory."""
LEARNERS = {"ucbvi": "UCB-VI", "expref": "ExpRef", "ordered-expref": "OrderedExpRef"}


def format_table(result: dict[str, Any]) -> str:
    """All tables of a result of `bench.run`, as text.

    Example:
        >>> format_table({"machine": {"cores": 2, "load": 0.1, "versions": {"jax": "0.7"}}, "minutes": 1.5})
        '2 cores, load 0.1 at the start, jax 0.7; measured in 1.5 minutes'
    """
    parts = []
    for cores in sorted({row["cores"] for row in result.get("ucbvi", [])}):
        parts.append(_ucbvi_table([row for row in result["ucbvi"] if row["cores"] == cores], cores))
        parts.append(
            _expref_table([row for row in result["expref"] if row["cores"] == cores], cores)
        )
        if cores == 1:
            parts.append(_lanes_table(result["expref"]))
    if "states" in result:
        parts.append(_states_table(result["states"]))
    if "bandits" in result:
        parts.append(_bandits_table(result["bandits"]))
    if "launches" in result:
        parts.append(format_counts(result["launches"]))
    if "scaling" in result:
        parts.append(_scaling_table(result["scaling"]))
    about = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = "" if about["load"] is None else f", load {about['load']:.1f} at the start"
    parts.append(
        f"{about['cores']} cores{load}, {versions}; measured in {result['minutes']:.1f} minutes"
    )
    return "\n\n".join(parts)


def format_counts(rows: list[dict[str, Any]]) -> str:
    """The table of `launches`.

    Example:
        >>> row = {"learner": "expref", "engine": "blocks", "size": (15, 2, 5), "per": "step", "lanes": 1024,
        ...        "before": 691, "goal": 12, "launches": 7, "syncs": 0, "inner": 0, "float64": 4e6, "bytes": 3e7,
        ...        "temp_bytes": 2**20, "argument_bytes": 2**21, "compile_cpu_seconds": 8.0}
        >>> " ".join(format_counts([row]).splitlines()[4].split())
        'expref blocks 15 2 step 1024 691 7.0 12 0 0 3906 29.3 17.5 19.3 3 8'
    """
    head = ["learner", "engine", "H", "k", "per", "lanes", "before", "launches", "goal"]
    head += ["host waits", "inner loops", "flop64/lane", "kB/lane", "launch us", "memory us"]
    head += ["MB", "compile CPU s"]
    body = []
    for row in rows:
        H, k = row["size"][:2]
        lanes = row["lanes"]
        body.append([
            row["learner"], row["engine"], f"{H}", f"{k}", row["per"], f"{lanes}",
            _whole(row["before"]), f"{row['launches']:.1f}", _whole(row["goal"]),
            f"{row['syncs']:.0f}", f"{row['inner']:.0f}",
            f"{row['float64'] / lanes:.0f}", f"{row['bytes'] / lanes / 1e3:.1f}",
            f"{row['launches'] * LAUNCH_US:.1f}", f"{row['bytes'] / BANDWIDTH * 1e6:.1f}",
            f"{(row['temp_bytes'] + row['argument_bytes']) / 2**20:.0f}", f"{row['compile_cpu_seconds']:.0f}",
        ])  # fmt: skip
    title = (
        "An A100 that is not there, counted, not timed: what one episode, or one step of the count machine, of all\n"
        "lanes launches, moves and computes; the times that its launches "
        f"({LAUNCH_US} us each) and its memory ({BANDWIDTH / 1e12:.2f} TB/s)\n"
        "alone would allow; before: launches of the programs that were written for CPUs alone, counted then"
    )
    return f"{title}\n{grid(head, body)}"


def _whole(number: int | None) -> str:
    return "" if number is None else f"{number}"


def paired_ratio(ours: Row, theirs: Row) -> float:
    """How many times faster we are: the median over the rounds that both were in of their time /
    our time.

    Example:
        >>> paired_ratio({"us": [1.0, 2.0, 1.0]}, {"us": [3.0, 8.0, 3.0]})
        3.0
    """
    return median(b / a for a, b in zip(ours["us"], theirs["us"], strict=False))


def _by_size(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row["size"]), []).append(row)
    return groups


def _mode(cores: int) -> str:
    return "one core" if cores == 1 else f"all {cores} cores"


def _ucbvi_table(rows: list[Row], cores: int) -> str:
    alone = {tuple(row["size"]): row for row in rows if row.get("workers") == 1}
    rows = [row for row in rows if "workers" not in row]
    lanes = sorted({row["lanes"] for row in rows if row["who"] == "jaxbandit"})
    peers = sorted(
        {row["who"] for row in rows} - {"jaxbandit"}, key=["numba", "numpy", "rlberry"].index
    )
    head = [
        "H",
        "k",
        *(f"{n} lanes" for n in lanes),
        *(f"{p} us" for p in peers),
        *(f"x {p}" for p in peers),
    ]
    head += ["lanes", "episodes/s", "once s", "peak MB", *(["x 1 tile"] if alone else [])]
    body = []
    for (H, k, A), group in _by_size(rows).items():
        ours = {row["lanes"]: row for row in group if row["who"] == "jaxbandit"}
        theirs = {row["who"]: row for row in group if row["who"] != "jaxbandit"}
        best = min(ours.values(), key=lambda row: row["median_us"])
        body.append([
            f"{H}", f"{k}", *(f"{ours[n]['median_us']:.2f}" for n in lanes),
            *(f"{theirs[p]['median_us']:.3g}" for p in peers),
            *(f"{paired_ratio(best, theirs[p]):.3g}" for p in peers),
            f"{best['lanes']}", f"{best['episodes_per_second']:.3g}", f"{best['once_seconds']:.1f}",
            f"{best['peak_bytes'] / 1e6:.0f}",
            *([f"{paired_ratio(ours[max(lanes)], alone[H, k, A]):.2f}"] if alone else []),
        ])  # fmt: skip
    title = (
        f"UCB-VI, {_mode(cores)}: microseconds per episode and lane of jaxbandit and its peers; "
        "x = peer / jaxbandit at its best number of lanes"
        + (
            f"; x 1 tile: {max(lanes)} lanes, a tile at a time, take so many times as long"
            if alone
            else ""
        )
    )
    return f"{title}\n{grid(head, body)}"


def _expref_table(rows: list[Row], cores: int) -> str:
    head = [
        "",
        "H",
        "k",
        *(f"T={T:.0e}" for T in LONG),
        "growth",
        "numba us",
        "x numba",
        f"x at {LONG[1]:.0e} *",
    ]
    head += ["numpy us", "loop us", "once s", "peak MB"]
    body = []
    for learner in ("expref", "ordered-expref"):
        for (H, k, _), group in _by_size(row for row in rows if row["learner"] == learner).items():
            ours = {
                row["num_episodes"]: row
                for row in group
                if row.get("engine") == "blocks" and row["lanes"] == SEEDS
            }
            seconds = {T: row["median_us"] * T / 1e6 for T, row in ours.items()}
            peers = {row["who"]: row for row in group if row["who"] != "jaxbandit"}
            loop = next((row for row in group if row.get("engine") == "episodes"), None)
            growth = f"{_growth(ours):.2f}" if LONG[-1] in ours else ""
            ratios = [
                f"{paired_ratio(ours[T], peers['numba']):.3g}" if T in ours else ""
                for T in LONG[:2]
            ]
            body.append([
                LEARNERS[learner], f"{H}", f"{k}",
                *(f"{1e3 * seconds[T]:.3g} ms" if T in seconds else "" for T in LONG), growth,
                f"{peers['numba']['median_us']:.3f}", *ratios, _us(peers.get("numpy")), _us(loop),
                f"{ours[LONG[0]]['once_seconds']:.1f}", f"{ours[LONG[0]]['peak_bytes'] / 1e6:.0f}",
            ])  # fmt: skip
    empty = [j for j in range(len(head)) if not any(line[j] for line in body)]
    head, *body = (
        [cell for j, cell in enumerate(line) if j not in empty] for line in [head, *body]
    )
    return (
        f"ExpRef, {_mode(cores)}: time per seed of {SEEDS} seeds, block engine; peers: us per episode\n"
        f"{grid(head, body)}\n"
        f"growth: from T={LONG[0]:.0e} to {LONG[-1]:.0e}; * with the peer's time per episode at T={LONG[0]:.0e}; "
        f"loop us: the episode engine, {SEEDS} lanes, per episode and lane"
    )


def _lanes_table(rows: list[Row]) -> str:
    """ExpRef on the block engine at every number of lanes, on one core."""
    chosen = [
        row
        for row in rows
        if (row.get("engine"), row["learner"], row["num_episodes"], row["cores"])
        == ("blocks", "expref", LONG[0], 1)
    ]
    lanes = sorted({row["lanes"] for row in chosen})
    body = []
    for (H, k, _), group in _by_size(chosen).items():
        at = {row["lanes"]: row["median_us"] * LONG[0] / 1e3 for row in group}
        body.append([f"{H}", f"{k}", *(f"{at[n]:.3g}" if n in at else "" for n in lanes)])
    head = ["H", "k", *(f"{n} lanes" for n in lanes)]
    title = f"ExpRef, one core, block engine, T={LONG[0]:.0e}: milliseconds per seed"
    return f"{title}\n{grid(head, body)}"


def _growth(ours: dict[int, Row]) -> float:
    """What the longest runs cost in shortest ones: the median over the rounds, which measure both
    in turn."""
    return LONG[-1] / LONG[0] / paired_ratio(ours[LONG[-1]], ours[LONG[0]])


def _us(row: Row | None) -> str:
    return "" if row is None else f"{row['median_us']:.2f}"


def _states_table(rows: list[Row]) -> str:
    lanes = sorted({row["lanes"] for row in rows if row["who"] == "jaxbandit"})
    head = ["instance", "states", "H", "A", *(f"{n} lanes" for n in lanes)]
    head += ["numba us", "x numba", "once s", "compile s"]
    body = []
    for (H, k, A, name), group in _by_size(rows).items():
        ours = {row["lanes"]: row for row in group if row["who"] == "jaxbandit"}
        numba = next(row for row in group if row["who"] == "numba")
        most = ours[max(lanes)]
        body.append([
            name, f"{k}", f"{H}", f"{A}", *(f"{ours[n]['median_us']:.3g}" for n in lanes),
            f"{numba['median_us']:.3g}", f"{paired_ratio(most, numba):.2f}",
            f"{most['once_seconds']:.1f}", f"{most['compile_seconds']:.1f}",
        ])  # fmt: skip
    found = [
        f"{label} {slope:.2f}" for label, _, _, slope in states_lines(rows) if slope is not None
    ]
    title = (
        "UCB-VI on MDPs with many states, one core: microseconds per episode and lane; "
        f"x = Numba / jaxbandit with {max(lanes)} lanes"
    )
    slopes = "slopes (log time against log states, from 25 states on; the work's is 2): "
    return f"{title}\n{grid(head, body)}\n{slopes}{', '.join(found)}"


def _bandits_table(rows: list[Row]) -> str:
    lanes = sorted({row["lanes"] for row in rows if row["who"] == "jaxbandit"})
    body = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        group = [row for row in rows if row["learner"] == learner]
        ours = {row["lanes"]: row for row in group if row["who"] == "jaxbandit"}
        numba = next(row for row in group if row["who"] == "numba")
        times = [f"{ours[n]['median_us']:.3g}" for n in lanes]
        ratios = [f"{paired_ratio(ours[n], numba):.2f}" for n in lanes[1:]]
        body.append([learner, *times, f"{numba['median_us']:.3g}", *ratios])
    head = ["learner", *(f"{n} lanes" for n in lanes), "numba us", *(f"x {n}" for n in lanes[1:])]
    title = "Nine arms, one core: microseconds per episode and lane; x = Numba / jaxbandit with so many lanes"
    return f"{title}\n{grid(head, body)}"


def states_lines(rows: list[Row]) -> list[tuple[str, list[int], list[float], float | None]]:
    """Of each contestant on general MDPs: its name, states, microseconds, and the slope from 25 states on.

    Example:
        >>> row = {"who": "numba", "lanes": 4}
        >>> states_lines([{**row, "size": (20, k, 4, "general"), "median_us": k**2 / 100} for k in (25, 50, 100)])
        [('numba', [25, 50, 100], [6.25, 25.0, 100.0], 2.0)]
    """
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row["size"][3] == "general":
            lanes = f", {row['lanes']} lanes" if row["who"] == "jaxbandit" else ""
            lines.setdefault(f"{row['who']}{lanes}", []).append((row["size"][1], row["median_us"]))
    found = []
    for label, pairs in lines.items():
        many = np.log([pair for pair in pairs if pair[0] >= 25])
        slope = None
        if len(many) > 1:
            slope = round(float(np.polyfit(many[:, 0], many[:, 1], 1)[0]), 3)
        found.append((label, [k for k, _ in pairs], [us for _, us in pairs], slope))
    return found


def draw_states(rows: list[Row], path: Path) -> None:
    """Draws time against states, a line for each number of lanes and one for Numba, with slopes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    for label, states, times, slope in states_lines(rows):
        style = "k--" if label == "numba" else "o-"
        ax.loglog(states, times, style, label=label + ("" if slope is None else f": {slope:.2f}"))
    ax.set(xlabel="states", ylabel="us per episode and lane", title="UCB-VI, H = 20, A = 4")
    ax.legend(title="slope from 25 states on")
    figure.savefig(path)


def _scaling_table(rows: list[Row]) -> str:
    head = ["axis", "value", "UCB-VI us", "numba us", "ExpRef ms per seed", "numba ms per seed"]
    body = []
    for axis in dict.fromkeys(row["axis"] for row in rows):
        for value in dict.fromkeys(row["value"] for row in rows if row["axis"] == axis):
            at = [row for row in rows if (row["axis"], row["value"]) == (axis, value)]
            here = {(row["learner"], row["who"]): row for row in at}
            line = [axis, f"{value:.0e}" if axis == "T" else f"{value}"]
            for learner in ("ucbvi", "expref"):
                for who in ("jaxbandit", "numba"):
                    row = here.get((learner, who))
                    scale = 1 if row is None or learner == "ucbvi" else row["num_episodes"] / 1e3
                    line.append("" if row is None else f"{row['median_us'] * scale:.3g}")
            body.append(line)
    title = (
        f"Growth around H = 15, k = 2, A = 5, {SEEDS} lanes: UCB-VI in microseconds per episode and lane, "
        f"ExpRef at T={LONG[0]:.0e} in milliseconds per seed"
    )
    return f"{title}\n{grid(head, body)}"


def grid(head: list[str], body: list[list[str]]) -> str:
    """Columns aligned to the right."""
    return write_table(head, body, right=range(len(head)))
