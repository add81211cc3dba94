"""Settings out of a space."""

import numpy as np
import pytest

from jaxbandit.studies.tuning import Range, grid_settings, random_settings


def test_random_settings_fill_every_part_of_a_range():
    settings = random_settings({"c": Range(0.01, 100.0), "d": Range(-1, 1, log=False)}, 40, key=3)
    logs = np.sort(np.log10([s["c"] for s in settings]))
    np.testing.assert_array_equal(np.floor((logs + 2) * 10), np.arange(40))
    plain = np.sort([s["d"] for s in settings])
    np.testing.assert_array_equal(np.floor((plain + 1) * 20), np.arange(40))
    assert settings == random_settings(
        {"c": Range(0.01, 100.0), "d": Range(-1, 1, log=False)}, 40, key=3
    )


def test_lists_are_drawn_without_repetition():
    space = {"a": [1.0, 2.0, 3.0], "b": [0.1, 0.2]}
    every = grid_settings(space)
    assert len(every) == 6
    some = random_settings(space, 4)
    assert len(some) == 4
    assert all(s in every for s in some)
    assert len({tuple(s.values()) for s in some}) == 4
    assert random_settings(space, 100) == every
    mixed = random_settings({"a": [1.0, 2.0], "c": Range(1.0, 2.0)}, 30)
    assert {s["a"] for s in mixed} == {1.0, 2.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Range(2.0, 1.0), "low < high"),
        (lambda: Range(0.0, 1.0), "low > 0"),
        (lambda: grid_settings({}), "space: .*accepted: a non-empty dictionary"),
        (lambda: grid_settings({"a": []}), r"space\['a'\]: \[\]; accepted"),
        (lambda: grid_settings({"a": Range(1.0, 2.0)}), "a list of values with method 'grid'"),
        (lambda: random_settings({"a": [1.0]}, 0), "count: 0; accepted"),
    ],
)
def test_errors_name_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()
