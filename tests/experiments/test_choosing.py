"""The rule by which settings are chosen, on tables that are checked by hand."""

import numpy as np
import pytest
from jaxbandit.experiments.choosing import LINEAR, Cell, cell_of, judge
from made_up_results import make_up

import jaxbandit as jb


def judged(final, half=None):
    """From tables of means [S, C], two equal instances a cell."""
    copies = [None if table is None else np.stack([table] * 2, -1)[..., None] for table in (final, half)]  # fmt: skip
    cells = [
        Cell(copies[0][:, c], None if half is None else copies[1][:, c])
        for c in range(final.shape[1])
    ]
    return judge([{"x": float(j)} for j in range(len(final))], cells)


def test_the_worst_ratio_counts():
    final = np.array([[1.0, 40.0], [2.0, 15.0], [4.0, 10.0]])
    found = judged(final, final / 1.5)
    np.testing.assert_allclose(found.ratios, [[1, 4], [2, 1.5], [4, 1]])
    assert found.worst.tolist() == [4, 2, 4]
    assert found.choice == 1


def test_linear_settings_are_refused_unless_all_are():
    final = np.array([[1.0, 1.0], [2.0, 2.0]])
    half = np.array([[0.9, 1 / (LINEAR + 0.01)], [1.5, 1.5]])
    assert judged(final, half).linear.tolist() == [True, False]
    assert judged(final, half).choice == 1
    assert judged(final, half).worst.tolist() == [1, 2]  # still to the best of all
    assert judged(final, final / 2).choice == 0  # both are
    assert judged(final).choice == 0  # growth is not looked at


def test_a_setting_is_not_dropped_for_being_worse_than_a_refused_one():
    # Without noise the second is clearly worse than the first, which is refused, and is chosen all the same.
    final = np.array([[1.0], [2.0], [2.5]])
    half = final / np.array([[2.0], [1.5], [1.5]])
    found = judged(final, half)
    assert (found.choice, found.tied) == (1, 1)
    assert [found.is_tied(index) for index in range(3)] == [False, True, False]


def test_a_regret_of_zero_is_the_best():
    found = judged(np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]]))
    assert found.choice == 0
    assert found.worst[0] == 1


@pytest.mark.parametrize("grows", [True, False])
def test_cells_are_the_ends_and_middles_of_a_familys_curves(grows):
    grid = jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0, 2.0])
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    ds = make_up({"learners": {"UCB-VI": grid}, "instances": {"I": [mdp] * 4}, "num_episodes": 1200, "num_seeds": 2})  # fmt: skip
    names = [str(name) for name in ds["instance"].values]
    cell = cell_of(ds, "UCB-VI", names, 2, grows=grows)
    curves = ds["regret"].values[0].transpose(1, 0, 2, 3)[:2]
    np.testing.assert_array_equal(cell.final, curves[..., -1])
    assert (cell.half is None) == (not grows)
    if grows:
        assert int(ds["episode"].values[5]) == 600
        np.testing.assert_array_equal(cell.half, curves[..., 5])
