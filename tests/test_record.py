"""Recording grids: increasing, inside 1..T, ending with T, and errors that say what is accepted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandit import record

GRIDS = [record.linear(1), record.linear(200), record.log(1), record.log(100), record.log(50, 10)]
GRIDS += [record.explicit([1])]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(1, 10**13), st.sampled_from(GRIDS))
def test_points_increase_and_end_with_the_last_episode(num_episodes, grid):
    points = grid.points(num_episodes)
    assert points.dtype == np.int64
    assert points[0] >= 1
    assert points[-1] == num_episodes
    assert (np.diff(points) > 0).all()
    assert len(points) <= grid.count + 1


def test_linear_is_even_and_exact_for_long_runs():
    assert record.linear(4).points(10**15).tolist() == [j * 25 * 10**13 for j in range(1, 5)]
    assert record.linear(200).points(3).tolist() == [1, 2, 3]
    assert record.linear(4).points(10).tolist() == [3, 5, 8, 10], "rounded up"


def test_log_has_constant_ratio():
    points = record.log(7, first=10).points(10**7)
    assert points.tolist() == [10**j for j in range(1, 8)]


def test_explicit_adds_the_end():
    assert record.explicit([3, 7]).points(10).tolist() == [3, 7, 10]
    assert record.explicit([3, 10]).points(10).tolist() == [3, 10]
    assert record.explicit([]).points(10).tolist() == [10]


def test_describe_tells_grids_apart():
    described = [str(grid.describe()) for grid in GRIDS]
    assert len(set(described)) == len(GRIDS)


# fmt: off
BAD = [  # recording, T, message
    ("linear", {"count": 0}, 10, "count: 0; accepted: a whole number of points, at least 1"),
    ("linear", {"count": 2.5}, 10, r"count: 2\.5; accepted"),
    ("linear", {"count": 3}, 0, "num_episodes: 0; accepted: a whole number, at least 1"),
    ("log", {"count": 5, "first": 0}, 10, "first: 0; accepted: an episode, at least 1"),
    ("explicit", {"episodes": [3, 2]}, 10, r"episodes: \[3, 2\]; accepted: whole numbers, strictly increasing"),
    ("explicit", {"episodes": [0, 2]}, 10, "episodes: 0; accepted: whole numbers, at least 1"),
    ("explicit", {"episodes": [20]}, 10, r"record: episode 20; accepted: 1\.\.10 \(num_episodes\)"),
]
# fmt: on


@pytest.mark.parametrize(("kind", "given", "num_episodes", "message"), BAD)
def test_errors(kind, given, num_episodes, message):
    with pytest.raises(ValueError, match=message):
        getattr(record, kind)(**given).points(num_episodes)
