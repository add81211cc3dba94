"""Tables of running times, from made-up times."""

import pytest
from jaxbandit.experiments import runtimes
from made_up_results import make_up_all

from jaxbandit.experiment import Options


def test_times_are_scaled_to_the_papers_episodes_and_seeds():
    datasets = make_up_all(
        runtimes.EXPERIMENT, Options(episodes=20_000), seconds=lambda *cell: 1.28
    )
    alone, together, blocks = (
        runtimes.times(datasets, way, "ExpRef", "H = 15, k = 2, A = 4") for way in runtimes.WAYS
    )
    # 1.28 s (up to 1 % more): for 20,000 episodes, for 64 seeds of 2,000 episodes, for all
    # 2,000,000.
    assert alone.run == pytest.approx(128, rel=0.011)
    assert together.run == pytest.approx(20, rel=0.011)
    assert blocks.run == pytest.approx(1.28, rel=0.011)
    assert runtimes.times(datasets, "blocks", "UCB-VI", "H = 15, k = 2, A = 4") is None
    table = runtimes.tables(datasets, Options())["runtimes.md"]
    assert "| UCB-VI, paper (Apple M3)" in table
    assert "947" in table
