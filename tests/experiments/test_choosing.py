"""The rule by which settings are chosen, on tables that are checked by hand."""

import numpy as np
from jaxbandit.experiments.choosing import LINEAR, judge


def test_the_worst_ratio_counts():
    final = np.array([[1.0, 40.0], [2.0, 15.0], [4.0, 10.0]])
    found = judge(final, final / 1.5)
    np.testing.assert_allclose(found.ratios, [[1, 4], [2, 1.5], [4, 1]])
    assert found.worst.tolist() == [4, 2, 4]
    assert found.choice == 1


def test_linear_settings_are_refused_unless_all_are():
    final = np.array([[1.0, 1.0], [2.0, 2.0]])
    half = np.array([[0.9, 1 / (LINEAR + 0.01)], [1.5, 1.5]])
    assert judge(final, half).linear.tolist() == [True, False]
    assert judge(final, half).choice == 1
    assert judge(final, final / 2).choice == 0  # both are
    nowhere = np.full((2, 2), np.nan)
    assert judge(final, nowhere).choice == 0  # growth is not looked at


def test_a_regret_of_zero_is_the_best():
    found = judge(np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]]))
    assert found.choice == 0
    assert found.worst[0] == 1
