"""Checks of arguments, written once: what a public function cannot mean is refused at the border.

Every error is a ValueError that reads "argument: value seen; accepted: ...". Nothing here starts
jax: what has to know whether an array is being traced is in `jaxbandit.mdp`, `jaxbandit.planning` and
`jaxbandit.instances`, and builds on these.
"""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

LARGEST_SEED = 2**32 - 1
"""jax keeps 32 bits of a seed: a larger one would give the numbers of another."""
MOST_EPISODES = 2**53
"""Float64 counts every episode up to here."""
MOST_SEEDS = 2**20
"""A sweep lists its lanes one by one before it runs them; beyond this many the list is the trouble."""
LONGEST_NAME = 200
LONGEST_LINE = 2000
"""Of a text: several names with what stands between them."""
JOINERS = frozenset("\u200c\u200d")
"""The invisible characters that some scripts need inside words."""
BLANK = frozenset("\u00a0\u115f\u1160\u2800\u3164\uffa0") | JOINERS
"""Characters that count as letters or symbols and show nothing."""


def number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    below: bool = False,
) -> float:
    """``value`` as a float in [low, high], without low if ``above``, without high if ``below``; anything else is an error.

    Example:
        >>> number("bonus_scale", 0.5, low=0)
        0.5
        >>> number("bonus_scale", -1, low=0)
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1; accepted: a finite number >= 0
    """
    seen = _real(value)
    least, most = seen == low and above, seen == high and below
    if seen is None or not low <= seen <= high or least or most:
        accepted = f"a finite number {' and '.join(bounds(low, high, above, below))}".strip()
        raise ValueError(f"{name}: {value!r}; accepted: {accepted}")
    return seen


def bounds(low: float, high: float, above: bool = False, below: bool = False) -> list[str]:
    """The ends of a range that are finite, as text: [">= 0", "< 1"]."""
    ends = [f"{'>' if above else '>='} {low:g}"] if math.isfinite(low) else []
    return ends + ([f"{'<' if below else '<='} {high:g}"] if math.isfinite(high) else [])


def share(name: str, value: Any) -> float:
    """``value`` as a float strictly between 0 and 1, such as a confidence level.

    Example:
        >>> share("level", 0.95)
        0.95
        >>> share("level", 95)
        Traceback (most recent call last):
        ...
        ValueError: level: 95; accepted: a number strictly between 0 and 1
    """
    seen = _real(value)
    if seen is None or not 0 < seen < 1:
        raise ValueError(f"{name}: {value!r}; accepted: a number strictly between 0 and 1")
    return seen


def whole(
    name: str,
    value: Any,
    at_least: int = 1,
    at_most: int | None = None,
    what: str = "a whole number",
) -> int:
    """``value`` as a Python int: an integer of any type, or a float without a fraction such as 2e6.

    Example:
        >>> whole("num_episodes", 2e6)
        2000000
        >>> whole("horizon", 2.5)
        Traceback (most recent call last):
        ...
        ValueError: horizon: 2.5; accepted: a whole number, at least 1
    """
    try:
        seen = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        real = _real(value)
        seen = int(real) if real is not None and real == math.floor(real) else None
    if seen is None or seen < at_least or (at_most is not None and seen > at_most):
        limits = f"at least {at_least}" + ("" if at_most is None else f" and at most {at_most}")
        raise ValueError(f"{name}: {value!r}; accepted: {what}, {limits}")
    return seen


def seed(name: str, value: Any) -> int:
    """``value`` as a root seed, 0 to 2^32 - 1.

    Example:
        >>> seed("seed", 7)
        7
        >>> seed("seed", 2**32)
        Traceback (most recent call last):
        ...
        ValueError: seed: 4294967296; accepted: a whole number, at least 0 and at most 4294967295
    """
    return whole(name, value, at_least=0, at_most=LARGEST_SEED)


def _real(value: Any) -> float | None:
    """A finite real scalar (also a 0-dimensional array) as a float; None for anything else."""
    if isinstance(value, str | bytes | bool | np.bool_) or getattr(value, "shape", ()) != ():
        return None
    if not isinstance(value, numbers.Number) and hasattr(value, "item"):
        try:
            value = value.item()
        except (TypeError, NotImplementedError):  # traced, or a key
            return None
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return None
    try:
        seen = float(value)
    except OverflowError:
        return None
    return seen if math.isfinite(seen) else None


def choice(name: str, value: Any, accepted: tuple[Any, ...]) -> Any:
    """``value`` if it is one of ``accepted``, else an error that lists them.

    Example:
        >>> choice("bonus", "hoeffding", ("hoeffding", "bernstein"))
        'hoeffding'
    """
    if not any(
        value is option or (type(value) is type(option) and value == option) for option in accepted
    ):
        raise ValueError(f"{name}: {value!r}; accepted: {', '.join(map(repr, accepted))}")
    return value


def accept(argument: str, value: Any, accepted: Iterable[str] | Iterable[int]) -> None:
    """Raises a ValueError with near matches unless ``value`` is among ``accepted``.

    Example:
        >>> accept("learner", "ExpReff", ["ExpRef", "UCB-VI"])
        Traceback (most recent call last):
        ...
        ValueError: learner: 'ExpReff'; did you mean 'ExpRef'? accepted: ExpRef, UCB-VI
    """
    known = list(accepted)
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool) and value in known:
        return
    listed = ", ".join(map(str, known)) or "none"
    raise ValueError(
        f"{argument}: {value!r}; {did_you_mean(value, known, alike=0.6)}accepted: {listed}"
    )


def some(argument: str, value: Any, known: list[str], each: str | None = None) -> list[str]:
    """Some of the ``known`` names: all for None, one for a text, those of a list. ``each`` is what
    one of them is called in errors.

    Example:
        >>> some("learners", None, ["ExpRef", "UCB-VI"]), some("learners", "ExpRef", ["ExpRef"])
        (['ExpRef', 'UCB-VI'], ['ExpRef'])
    """
    if value is None:
        return list(known)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise ValueError(f"{argument}: {value!r}; accepted: a list of {', '.join(known)}")
    chosen = list(value)
    if not chosen:
        raise ValueError(f"{argument}: {value!r}; accepted: at least one of {', '.join(known)}")
    for name in chosen:
        accept(each or argument, name, known)
    return chosen


def did_you_mean(value: Any, known: Iterable[Any], most: int = 2, alike: float = 0.5) -> str:
    """A hint at the nearest of the ``known`` names, or nothing if none is ``alike`` (0 to 1).

    Example:
        >>> did_you_mean("prophets", ["prophet", "pricing"])
        "did you mean 'prophet'? "
        >>> did_you_mean("zzz", ["prophet"])
        ''
    """
    near = difflib.get_close_matches(
        str(value), [str(name) for name in known], n=most, cutoff=alike
    )
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def printable(argument: str, value: Any, at_most: int = LONGEST_NAME) -> str:
    """``value`` as a name that can be printed, drawn and stored: refused are control characters
    (also newlines and terminal escapes), surrogates, and what is invisible: marks that reverse the text, spaces without
    width, with which two names would look the same.

    Example:
        >>> printable("learners", "UCB-VI, c = 1/4")
        'UCB-VI, c = 1/4'
        >>> printable("learners", "two\\nlines")
        Traceback (most recent call last):
        ...
        ValueError: learners: name 'two\\nlines' has the character '\\n'; accepted: text without control characters
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{argument}: name {value!r}; accepted: a non-empty string")
    if len(value) > at_most:
        raise ValueError(
            f"{argument}: name {value[:20]!a}... of {len(value)} characters; "
            f"accepted: at most {at_most}"
        )
    for character in value:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and character not in JOINERS):
            raise ValueError(
                f"{argument}: name {value!a} has the character {character!a}; "
                "accepted: text without control characters"
            )
    if all(character in BLANK or character.isspace() for character in value):
        raise ValueError(f"{argument}: name {value!a}; accepted: a name that can be seen")
    return value


def names(argument: str, given: Any) -> None:
    """An error unless ``given`` is a non-empty dictionary whose keys are `printable` names.

    Example:
        >>> names("learners", [])
        Traceback (most recent call last):
        ...
        ValueError: learners: []; accepted: a non-empty dictionary, name -> learner
    """
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            f"{argument}: {given!r}; accepted: a non-empty dictionary, name -> {argument[:-1]}"
        )
    for name in given:
        printable(argument, name)


def text(argument: str, value: Any) -> str:
    """``value`` as a text of a figure, such as its title: newlines are fine, other control characters are not.

    Example:
        >>> text("title", "two\\nlines")
        'two\\nlines'
    """
    if not isinstance(value, str):
        raise ValueError(f"{argument}: {value!r}; accepted: text")
    for line in filter(str.strip, value.split("\n")):
        printable(argument, line, LONGEST_LINE)
    return value


def typed(argument: str, value: Any, kind: type | tuple[type, ...], accepted: str) -> Any:
    """``value`` if it is of this type.

    Example:
        >>> typed("learner", "expref", dict, "a Learner (jb.make_learner)")
        Traceback (most recent call last):
        ...
        TypeError: learner: str; accepted: a Learner (jb.make_learner)
    """
    if not isinstance(value, kind):
        raise TypeError(f"{argument}: {type(value).__name__}; accepted: {accepted}")
    return value


def dataset(argument: str, value: Any) -> Any:
    """``value`` if it is a Dataset, as `jaxbandit.sweep` returns it.

    Example:
        >>> dataset("ds", [])
        Traceback (most recent call last):
        ...
        TypeError: ds: list; accepted: the Dataset of a sweep
    """
    import xarray

    return typed(argument, value, xarray.Dataset, "the Dataset of a sweep")


def entries(name: str, array: np.ndarray, wrong: np.ndarray, accepted: str, axes: str) -> None:
    """An error at the first entry of ``array`` that is ``wrong``; ``axes`` are the names of its axes.

    Example:
        >>> prices = np.array([[0, -1]])
        >>> entries("prices", prices, prices < 0, "numbers >= 0", "stage, action")
        Traceback (most recent call last):
        ...
        ValueError: prices: -1 at stage 1, action 1; accepted: numbers >= 0
    """
    for index in np.argwhere(wrong)[:1]:
        seen = array[tuple(index)]
        raise ValueError(f"{name}: {seen!s} at {place(index, axes)}; accepted: {accepted}")


def distributions(name: str, array: np.ndarray, axes: str, but: Any = False) -> None:
    """An error unless the rows of ``array``, along its last axis, are probability distributions (up to 1e-5).

    Rows where ``but`` is True are not looked at.

    Example:
        >>> distributions("P", np.array([[0.5, 0.5], [0.5, 0.6]]), "state, next state")
        Traceback (most recent call last):
        ...
        ValueError: P: probabilities at state 1 sum to 1.1; they must sum to 1
    """
    looked = ~np.broadcast_to(but, array.shape[:-1])
    wrong = ~(np.isfinite(array) & (array >= 0)) & looked[..., None]
    entries(name, array, wrong, "probabilities", axes)
    sums = array.sum(axis=-1, dtype=np.float64)
    for index in np.argwhere((np.abs(sums - 1) > 1e-5) & looked)[:1]:
        at = f" at {place(index, axes)}" if len(index) else ""
        raise ValueError(
            f"{name}: probabilities{at} sum to {sums[tuple(index)]:.7g}; they must sum to 1"
        )


def place(index: Iterable[int], axes: str) -> str:
    """An index in words. Stages count from 1, as in the paper; all else is an index of the array.

    Example:
        >>> place([0, 2], "stage, level, action")
        'stage 1, level 2'
    """
    named = zip(axes.split(", "), index, strict=False)
    return ", ".join(f"{axis} {int(j) + (axis == 'stage')}" for axis, j in named)


def real_array(name: str, value: Any, accepted: str = "real numbers") -> Any:
    """``value`` as an array of integers or floats; truth values, complex numbers, text and
    objects are refused. An array of jax stays what it is.

    Example:
        >>> real_array("values", [0, 0.5]).tolist()
        [0.0, 0.5]
        >>> real_array("values", [True, False])
        Traceback (most recent call last):
        ...
        ValueError: values: dtype bool; accepted: real numbers
    """
    if not hasattr(value, "dtype"):
        try:
            value = np.asarray(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"{name}: cannot be made an array ({error}); accepted: {accepted}, rows of one length"
            ) from None
    # extended floats such as bfloat16 have the kind "V" in numpy
    if getattr(value.dtype, "kind", None) not in ("f", "i", "u") and str(value.dtype) != "bfloat16":
        raise ValueError(f"{name}: dtype {value.dtype}; accepted: {accepted}")
    return value
