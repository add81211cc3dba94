"""Tables of the benchmark, from made-up times."""

import json

import pytest

pytest.importorskip("numba")

from jaxbandit.experiments.bench import arena as bench
from jaxbandit.experiments.bench import cases as bench_cases
from jaxbandit.experiments.bench import table as bench_table

COSTS = {"jaxbandit": 0.5, "numba": 1.0, "numpy": 300.0, "rlberry": 600.0}


class StubArena:
    """Replies with made-up times: three rounds, the second disturbed."""

    def __init__(self, cores):
        self.cores, self.jobs = cores, []

    def compare(self, jobs):
        self.jobs += jobs
        rows = []
        for job in jobs:
            cost = COSTS[job["who"]]
            if job.get("engine") == "blocks":
                cost = 4e3 / job["num_episodes"]
            row = {**job, "cores": len(self.cores), "us": [cost, 7 * cost, cost], "median_us": cost}
            extra = {
                "episodes_per_second": 1e6 / cost,
                "peak_bytes": 5e8,
                "once_seconds": 2.0,
                "compile_seconds": 1.0,
            }
            rows.append(json.loads(json.dumps({**row, **extra})))
        return rows


def result(**tables):
    return {
        "machine": {"cores": 2, "load": None, "versions": {"jax": "1"}},
        "minutes": 1.0,
        **tables,
    }


@pytest.mark.parametrize("cores", [[0], [0, 1]])
def test_tables(cores):
    arena = StubArena(cores)
    ucbvi = bench_cases.ucbvi_rows(arena, bench.PAPER, (1, 16, 64), 1000)
    expref = bench_cases.expref_rows(arena, bench.PAPER[:1], (1, 16, 64), 1000, quick=False)
    text = bench_table.format_table(result(ucbvi=ucbvi, expref=expref))
    lines = [line.split() for line in text.splitlines()]
    assert sum(line[:2] == ["20", "4"] for line in lines) == 1
    assert text.count("OrderedExpRef") == 1
    # 1 us an episode against 4 ms a seed, at T = 2e6 and 2e8
    row = next(line for line in lines if line[:3] == ["ExpRef", "15", "2"])
    assert {"500", "5e+04", "1.00"} & set(row) == (
        {"500", "5e+04", "1.00"} if cores == [0] else {"500"}
    )
    assert all(job["lanes"] % len(cores) == 0 for job in arena.jobs)


def test_scaling_table():
    rows = bench_cases.scaling_rows(StubArena([0]), 1000, quick=False)
    text = bench_table.format_table(result(scaling=rows))
    assert [line.split()[0] for line in text.splitlines()[2:-2]].count("T") == 6
    assert {row["axis"] for row in rows} == {"lanes", "H", "k", "A", "T"}


def test_bandits():
    """Both learners beside Numba, with a ratio for every number of lanes but one."""
    rows = bench_cases.bandit_rows(StubArena([0]), 1000)
    text = bench_table.format_table(result(bandits=rows))
    body = [
        line.split() for line in text.splitlines() if line.split()[:1] in (["ucb1"], ["thompson"])
    ]
    assert [line[0] for line in body] == ["ucb1", "thompson"]
    assert {len(line) for line in body} == {9}


def test_many_states(tmp_path):
    """General MDPs and two known ones beside Numba: ratios, slopes, and a figure of them."""
    rows = bench_cases.states_rows(StubArena([0]), 8192, quick=False)
    for row in rows:
        row["median_us"] *= row["size"][1] ** 2 / 100
    text = bench_table.format_table(result(states=rows))
    lines = [line.split() for line in text.splitlines()]
    names = [
        line[0] for line in lines if line and line[0] in ("general", "riverswim", "frozen-lake")
    ]
    assert names == ["general"] * 6 + ["riverswim", "frozen-lake"]
    assert "numba 2.00" in text
    assert {line[8] for line in lines if line and line[0] == "general"} == {"2.00"}
    bench_table.draw_states(rows, tmp_path / "states.svg")
    assert (tmp_path / "states.svg").read_text().startswith("<?xml")
