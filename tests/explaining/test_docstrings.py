"""Docstrings as data: sections in any order, continuations, and things that have none."""

from jaxbandit.explaining import docstrings


def documented(first, second):
    """Adds
    two numbers.

    Or strings.

    Args:
        first: a number
        or a string.
        second: see there: it has
            a colon.

    Returns:
        The sum.

    Example:
        >>> 1 + 1
        2
    """


def bare(x):
    return x


def test_parts():
    assert docstrings.paragraphs(documented) == ["Adds two numbers.", "Or strings."]
    assert docstrings.entries(documented) == {
        "first": "a number or a string.",
        "second": "see there: it has a colon.",
    }
    assert docstrings.example(documented) == ">>> 1 + 1\n2"


def test_nothing_is_nothing():
    assert docstrings.paragraphs(bare) == [""]
    assert docstrings.entries(bare) == {}
    assert docstrings.example(bare) == ""
    assert docstrings.paragraphs("Plain text.\n\nMore.") == ["Plain text.", "More."]
