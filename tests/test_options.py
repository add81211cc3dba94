"""Options that are declared once are shown by every function that takes them, and no others are taken."""

import inspect
from typing import TypedDict

import pytest

from jaxbandit.options import known, spelled_out


class Options(TypedDict, total=False):
    """Shared.

    Fields:
        one: first: said
            in two lines.
        two: second.
    """

    one: int | None
    two: float


@spelled_out(Options, two=0.5)
def bare(**options):
    """Nothing of its own.

    Example:
        >>> 1
        1
    """
    return known(bare, options)


@spelled_out(Options)
def own(x, *, three=3, **options):
    """Some of its own.

    Args:
        x: a number.
        one: of another meaning.

    Returns:
        nothing.
    """
    return known(own, {"three": three, **options})


def test_signatures_have_every_option_with_its_default_and_type():
    assert str(inspect.signature(bare)) == "(*, one: int | None = None, two: float = 0.5)"
    names = list(inspect.signature(own).parameters)
    assert names == ["x", "three", "one", "two"]


def test_docstrings_explain_every_option_once():
    lines = inspect.getdoc(bare).splitlines()
    assert lines[2:6] == [
        "Args:",
        "    one: first: said",
        "        in two lines.",
        "    two: second.",
    ]
    assert lines[6:8] == ["", "Example:"]
    lines = inspect.getdoc(own).splitlines()
    assert lines[2:7] == [
        "Args:",
        "    x: a number.",
        "    one: of another meaning.",
        "    two: second.",
        "",
    ]


def test_values_are_filled_up_and_other_names_refused():
    assert bare(one=1) == {"one": 1, "two": 0.5}
    assert own(0) == {"three": 3, "one": None, "two": None}
    with pytest.raises(TypeError, match=r"own\(\) got an unexpected keyword argument 'four'"):
        own(0, four=4)
