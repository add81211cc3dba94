"""Where trees differ."""

import numpy as np

from jaxbandit.testing.trees import apart, differing, leaf_pairs, reshaped


def test_differing():
    one = {"a": np.asarray([1.0, np.nan]), "b": (np.int32(1),)}
    assert differing(one, {"a": np.asarray([1.0, np.nan]), "b": (np.int32(1),)}) is None
    assert differing(one, {"a": np.asarray([1.0, 2.0]), "b": (np.int32(1),)}) == "['a']"
    assert differing(one, {"a": np.asarray([1.0, np.nan]), "b": (np.int32(2),)}) == "['b'][0]"
    assert differing(1.0, 2.0) == "the value"


def test_apart():
    assert apart(np.float32(1), np.float32(1.000001)) is None
    assert apart((np.float32(1), np.int32(1)), (np.float32(1), np.int32(2))) == "[1]"
    assert apart(np.float32(1), np.float32(1.01)) == "the value"
    assert apart(np.float32(np.nan), np.float32(np.nan)) is None


def test_reshaped():
    assert reshaped((np.zeros(2),), (np.ones(2),)) is None
    assert reshaped((np.zeros(2),), [np.ones(2)]) == "the structure of the state changes"
    assert reshaped(np.zeros(2), np.zeros(3)) == "the value: float64[2] becomes float64[3]"
    assert [name for name, _, _ in leaf_pairs({"x": 1, "y": 2}, {"x": 1, "y": 2})] == [
        "['x']",
        "['y']",
    ]
