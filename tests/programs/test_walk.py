"""Values as plain data: what a description holds, and what makes it unlike any other."""

import types

import numpy as np

from jaxbandit.programs.walk import Walk


def described(thing):
    walk = Walk()
    return walk.describe(thing), walk.parts


def test_plain_values_are_themselves_and_shared_lists_are_followed_once():
    assert described((1, "a", None))[0] == ("tuple", [1, "a", None])
    own = [1]
    own.append(own)
    assert described(own)[0] == ("list", [1, ("again", 0)])


def test_functions_are_parts_by_name():
    def helper(x):
        return x

    found, parts = described(lambda x: helper(x) + 1)
    assert found[0] == "part"
    assert any(name.endswith("helper") for name in parts)


def test_libraries_that_name_each_other_come_to_an_end():
    """`os.path` has `os` in it."""
    place = {}
    exec("import os\ndef f(a):\n    return os.path.os.path.join(a)\n", place)
    assert "posixpath" in repr(described(place["f"])[1]) or "ntpath" in repr(described(place["f"]))


def test_what_is_unknown_says_what_it_is():
    _, parts = described(types.SimpleNamespace(x=(i for i in ())))
    assert "a builtins.generator, which cannot be compared between two runs" in parts


def test_arrays_differ_in_all_that_matters():
    arrays = [
        np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros((1, 2), np.float32),
        np.ones(2, np.float32), np.zeros(1, [("a", "f4"), ("b", "f4")]), np.zeros(1, [("b", "f4"), ("a", "f4")]),
    ]  # fmt: skip
    assert len({repr(described(array)[0]) for array in arrays}) == len(arrays)
