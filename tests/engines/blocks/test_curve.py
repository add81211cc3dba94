"""Curves from arms: exact inside arms and at their ends, and the same additions however arms are cut into calls."""

import numpy as np

from jaxbandit.engines.blocks.curve import extend


def drawn(seed, blocks=7, lanes=3, arms=4):
    random = np.random.default_rng(seed)
    length = random.integers(0, 50, (blocks, lanes, arms)).astype(np.float64)
    in_order = np.moveaxis(length, 1, 0).reshape(lanes, -1)
    begin = np.cumsum(in_order, -1) - in_order
    begin = np.moveaxis(begin.reshape(lanes, blocks, arms), 0, 1)
    return begin, length, random.random(length.shape)


def test_curve_is_the_sum_over_episodes():
    begin, length, regret = drawn(0)
    total = int(length.sum((0, 2)).min())
    points = np.arange(1, total + 1)
    curve, _ = extend(np.zeros((3, total)), np.zeros(3), points, begin, length, regret)
    for lane in range(3):
        each = np.repeat(regret[:, lane].ravel(), length[:, lane].ravel().astype(int))
        np.testing.assert_allclose(curve[lane], np.cumsum(each)[:total], rtol=1e-12)


def test_any_cut_gives_the_same_bits():
    arms = drawn(1)
    points = np.arange(3, 1000, 7)
    whole = extend(np.zeros((3, points.size)), np.zeros(3), points, *arms)
    for cuts in ([1, 2, 3, 4, 5, 6], [3], [2, 6]):
        curve, total = np.zeros((3, points.size)), np.zeros(3)
        for part in zip(*(np.split(x, cuts) for x in arms), strict=True):
            curve, total = extend(curve, total, points, *part)
        np.testing.assert_array_equal(curve, whole[0])
        np.testing.assert_array_equal(total, whole[1])


def test_nothing_played_changes_nothing():
    empty = np.zeros((2, 1, 3))
    curve, total = extend(
        np.array([[1.0, 0.0]]), np.array([2.0]), np.array([1, 9]), empty, empty, empty + np.nan
    )
    assert curve.tolist() == [[1, 0]]
    assert total.tolist() == [2]
