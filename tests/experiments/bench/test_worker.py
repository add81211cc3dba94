"""The process in which one contender runs."""

import pytest

pytest.importorskip("numba")

from jaxbandit.experiments.bench import worker as bench_worker

CASES = [("jaxbandit", "blocks"), ("numpy", ""), ("jaxbandit", "episodes")]


@pytest.mark.parametrize(("who", "engine"), CASES)
def test_worker_measures(who, engine):
    learner = "ucbvi" if engine == "episodes" else "expref"
    reply = bench_worker.answer([3, 1, 2], who, learner, 2, 200, engine)
    assert reply["seconds"] > 0
    assert reply["peak_bytes"] > 1e6
    assert ("once_seconds" in reply) == (who == "jaxbandit")
