"""What `bench` measures: which jobs for which contestant, and how their rows are put side by
side."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arena import Arena

Row = dict[str, Any]
Size = tuple[Any, ...]
"""H, k, A and, if it is not the paper's I1, the name of the instance."""
STATES = (4, 16, 25, 40, 64, 100)
STATES_LANES = (1, 4, 16)
BANDIT_LANES = (1, 16, 64, 256)

SEEDS = 64
"""Seeds of the ExpRef runs."""
LONG = (2_000_000, 200_000_000, 2_000_000_000_000)
"""T of the ExpRef runs; the peers, which simulate every episode, run the first only."""
NUMBA_RUNS, NUMPY_EPISODES = 16, 1_000


def peers_of(learner: str) -> list[str]:
    """The peers that are installed."""
    rlberry = importlib.util.find_spec("rlberry_scool") is not None
    return ["numba", "numpy", *(["rlberry"] if rlberry and learner == "ucbvi" else [])]


def job(size: Size, who: str, learner: str, lanes: int, num_episodes: int, **more: Any) -> Row:
    """A request to a worker."""
    if who == "jaxbandit":
        more.setdefault("engine", "blocks" if "expref" in learner else "episodes")
    return {
        "size": size,
        "who": who,
        "learner": learner,
        "lanes": lanes,
        "num_episodes": num_episodes,
    } | more


def ucbvi_rows(
    arena: Arena, sizes: list[Size], lanes: tuple[int, ...], num_episodes: int
) -> list[Row]:
    """UCB-VI: jaxbandit at every number of lanes that the cores divide, and all peers.

    With several cores also the largest number of lanes, a tile at a time.
    """
    cores = len(arena.cores)
    lanes = tuple(n for n in lanes if n % cores == 0)
    rows = []
    for size in sizes:
        jobs = [job(size, "jaxbandit", "ucbvi", n, num_episodes) for n in lanes]
        if cores > 1 and lanes:
            jobs.append(job(size, "jaxbandit", "ucbvi", max(lanes), num_episodes, workers=1))
        jobs.append(job(size, "numba", "ucbvi", NUMBA_RUNS * cores, num_episodes, threads=cores))
        if cores == 1:
            episodes = min(NUMPY_EPISODES, num_episodes)
            jobs += [
                job(size, who, "ucbvi", 1, episodes) for who in peers_of("ucbvi") if who != "numba"
            ]
        rows += arena.compare(jobs)
    return rows


def expref_rows(
    arena: Arena, sizes: list[Size], lanes: tuple[int, ...], num_episodes: int, quick: bool
) -> list[Row]:
    """ExpRef and OrderedExpRef: the block engine and the peers.

    With one core also longer runs, ExpRef at every number of lanes and, unless ``quick``, the
    episode engine.
    """
    cores = len(arena.cores)
    rows = []
    for size in sizes:
        for learner in ("expref", "ordered-expref"):
            jobs = [job(size, "jaxbandit", learner, SEEDS, LONG[0])]
            jobs.append(job(size, "numba", learner, cores, LONG[0], threads=cores))
            if cores == 1:
                jobs += [job(size, "jaxbandit", learner, SEEDS, T) for T in LONG[1:]]
                jobs.append(job(size, "numpy", learner, 1, LONG[0] // 20))
                if learner == "expref":
                    jobs += [
                        job(size, "jaxbandit", learner, n, LONG[0]) for n in lanes if n != SEEDS
                    ]
                if not quick:
                    jobs.append(
                        job(size, "jaxbandit", learner, SEEDS, num_episodes, engine="episodes")
                    )
            rows += arena.compare(jobs)
    return rows


def states_rows(arena: Arena, num_episodes: int, quick: bool) -> list[Row]:
    """UCB-VI on general MDPs with many states (H = 20, A = 4), RiverSwim and FrozenLake 8x8, beside Numba.

    More states, fewer episodes, but so many that what a call costs once does not show.
    """
    sizes: list[Size] = [(20, k, 4, "general") for k in (STATES[::2] if quick else STATES)]
    sizes += [(20, 6, 2, "riverswim"), (40, 64, 4, "frozen-lake")]
    rows = []
    for size in sizes:
        episodes = min(num_episodes, max(1024, 64 * num_episodes // size[1] ** 2))
        jobs = [job(size, "jaxbandit", "ucbvi", n, episodes) for n in STATES_LANES]
        rows += arena.compare([*jobs, job(size, "numba", "ucbvi", 4, episodes)])
    return rows


def bandit_rows(arena: Arena, num_episodes: int) -> list[Row]:
    """UCB1 and Thompson sampling on nine arms (means 0.1 to 0.9), beside Numba."""
    size, rows = (1, 1, 9, "bandit"), []
    for learner in ("ucb1", "thompson"):
        jobs = [job(size, "jaxbandit", learner, n, 8 * num_episodes) for n in BANDIT_LANES]
        rows += arena.compare([*jobs, job(size, "numba", learner, 16, 8 * num_episodes)])
    return rows


def scaling_rows(arena: Arena, num_episodes: int, quick: bool) -> list[Row]:
    """Cost against lanes, H, k, A and T, one at a time, around H = 15, k = 2, A = 5 and 64
    lanes."""
    ladders: dict[str, list[int]] = {
        "lanes": [1, 4, 8, 16, 32, 64, 256, 1024],
        "H": [5, 10, 20, 40],
        "k": [1, 2, 4, 8],
        "A": [2, 5, 10, 20],
    }
    rows = []
    for axis, values in ladders.items():
        for value in values[::2] if quick else values:
            size = (
                value if axis == "H" else 15,
                value if axis == "k" else 2,
                value if axis == "A" else 5,
            )
            lanes = value if axis == "lanes" else SEEDS
            jobs = [
                job(size, "jaxbandit", "ucbvi", lanes, num_episodes),
                job(size, "numba", "ucbvi", min(lanes, NUMBA_RUNS), num_episodes),
                job(size, "jaxbandit", "expref", lanes, LONG[0]),
                job(size, "numba", "expref", 1, LONG[0]),
            ]
            rows += [{**row, "axis": axis, "value": value} for row in arena.compare(jobs)]
    horizons = [2 * 10**power for power in ((6, 12) if quick else (5, 6, 8, 10, 12, 14))]
    jobs = [job((15, 2, 5), "jaxbandit", "expref", SEEDS, T) for T in horizons]
    rows += [{**row, "axis": "T", "value": row["num_episodes"]} for row in arena.compare(jobs)]
    return rows
