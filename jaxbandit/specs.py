"""Parameter specs: the range of an argument as data.

A constructor declares its parameters once::

    @takes(horizon=Whole(1), bonus=Choice("hoeffding", "bernstein"), bonus_scale=Real(low=0))
    def make(horizon, bonus="hoeffding", bonus_scale=1.0): ...

The check, its error message, `jaxbandit.describe`, the command line and the fuzz tests read the same
spec. Errors are ValueErrors that read "name: value; accepted: ...". Nothing here imports jax.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from jaxbandit.checks import bounds, choice, number, real_array, whole

ANYTHING: tuple[Any, ...] = (None, object(), True, 1j, math.nan, math.inf, "", "no such choice", b"\x00", [], {}, np.zeros(2),
                             np.zeros((1,) * 5))  # fmt: skip
"""What a parameter may be given."""
Constructor = TypeVar("Constructor", bound=Callable[..., Any])


@dataclass(frozen=True)
class Spec:
    """What a parameter accepts. Subclasses say what `check` returns and raises."""

    entrywise = True
    """Whether an array of parameters is checked entry by entry."""

    def check(self, name: str, value: Any) -> Any:
        """``value``, converted; ValueError "name: value; accepted: ..." if it is not accepted."""
        raise NotImplementedError

    @property
    def accepted(self) -> str:
        """What is accepted, as error messages and `describe` print it."""
        try:
            self.check("", object())
        except (ValueError, TypeError) as error:
            return str(error).partition("accepted: ")[2]
        return "anything"

    def edges(self) -> list[Any]:
        """Values at, within and beyond the ends of the range."""
        return []

    def good(self) -> list[Any]:
        """Some accepted values, ends of the range included."""
        return [value for value in [*ANYTHING, *self.edges()] if self._accepts(value)]

    def odd(self) -> list[Any]:
        """Some values that are refused."""
        return [value for value in [*ANYTHING, *self.edges()] if not self._accepts(value)]

    def _accepts(self, value: Any) -> bool:
        try:
            self.check("", value)
        except (ValueError, TypeError):
            return False
        return True


@dataclass(frozen=True)
class Real(Spec):
    """A finite number in [low, high]; ``above`` excludes low, ``below`` excludes high.

    Example:
        >>> Real(low=0).check("bonus_scale", 0.5)
        0.5
        >>> Real(low=0, high=1, below=True).check("ratio", 1)
        Traceback (most recent call last):
        ...
        ValueError: ratio: 1; accepted: a finite number >= 0 and < 1
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def check(self, name: str, value: Any) -> float:
        """As a float."""
        return number(name, value, **vars(self))

    def edges(self) -> list[Any]:
        """The ends, what is beyond them, and something between."""
        low = self.low if math.isfinite(self.low) else -2.0
        high = self.high if math.isfinite(self.high) else low + 4.0
        inside = low + (high - low) / 4
        return [inside, np.float32(inside), (low + high) / 2, low - 1, low, high, high + 1]


def Probability() -> Real:  # noqa: N802  (reads as the specs beside it)
    """A number in [0, 1].

    Example:
        >>> Probability().check("share", 0.25)
        0.25
    """
    return Real(0, 1)


@dataclass(frozen=True)
class Whole(Spec):
    """A whole number, at least ``low`` and at most ``high``; 2e6 counts as one.

    Example:
        >>> Whole(1).check("num_episodes", 2e6)
        2000000
        >>> Whole(1, 32).check("num_phases", 2.5)
        Traceback (most recent call last):
        ...
        ValueError: num_phases: 2.5; accepted: a whole number, at least 1 and at most 32
    """

    low: int = 1
    high: int | None = None

    def check(self, name: str, value: Any) -> int:
        """As a Python int."""
        return whole(name, value, self.low, self.high)

    def edges(self) -> list[Any]:
        """The smallest, the next ones, other types of whole numbers, fractions, and what is beyond the ends."""
        low = self.low
        ends = [] if self.high is None else [self.high, self.high + 1]
        return [low - 1, low, low + 0.5, low + 2, float(low), np.int64(low), *ends]


@dataclass(frozen=True, init=False)
class Choice(Spec):
    """One of some values, compared with their types.

    Example:
        >>> Choice("hoeffding", "bernstein").check("bonus", "chernoff")
        Traceback (most recent call last):
        ...
        ValueError: bonus: 'chernoff'; accepted: 'hoeffding', 'bernstein'
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any):
        """The accepted values."""
        object.__setattr__(self, "values", values)

    def check(self, name: str, value: Any) -> Any:
        """The value itself."""
        return choice(name, value, self.values)

    def edges(self) -> list[Any]:
        """All of them."""
        return list(self.values)


Flag = Choice(False, True)
"""True or False."""


@dataclass(frozen=True)
class Values(Spec):
    """An array of finite numbers in [low, high] with named axes, such as "H A" or "A or H A".

    Example:
        >>> Values("K", low=0, high=1).check("means", [0.1, 0.9]).tolist()
        [0.1, 0.9]
        >>> Values("K", low=0, high=1).check("means", [0.1, 1.5])
        Traceback (most recent call last):
        ...
        ValueError: means: 1.5 at [1]; accepted: finite numbers of shape [K], >= 0 and <= 1
    """

    axes: str
    """Names of the axes, separated by blanks; "or" separates what is accepted."""
    entrywise = False
    low: float = -math.inf
    high: float = math.inf
    least: float = 0.0
    """The smallest size of an entry that is not 0."""
    whole: bool = False
    """Whether entries are whole numbers."""

    def check(self, name: str, value: Any) -> Any:
        """As a float64 array; an array that jax is tracing stays as it is, and only its shape is checked."""
        shapes = [f"[{axes.replace(' ', ', ')}]" for axes in self.axes.split(" or ")]
        kind = "whole" if self.whole else "finite"
        limits = " and ".join(bounds(self.low, self.high))
        least = f"0 or of size >= {self.least:g}" if self.least else ""
        parts = [f"{kind} numbers of shape {' or '.join(shapes)}", limits, least]
        accepted = ", ".join(filter(None, parts))
        array = real_array(name, value, accepted)
        if array.ndim not in self._ndims() or 0 in array.shape:
            raise ValueError(f"{name}: shape {list(array.shape)}; accepted: {accepted}")
        try:
            array = np.asarray(array).astype(np.float64)
        except TypeError:  # traced
            return array
        size = np.abs(array)
        right = np.isfinite(array) & (array >= self.low) & (array <= self.high)
        right &= ((size == 0) | (size >= self.least)) & (not self.whole or array == np.floor(array))
        for index in np.argwhere(~right)[:1].tolist():
            raise ValueError(f"{name}: {array[tuple(index)]!s} at {index}; accepted: {accepted}")
        return array

    def _ndims(self) -> list[int]:
        return [len(axes.split()) for axes in self.axes.split(" or ")]

    def edges(self) -> list[Any]:
        """Arrays of every accepted number of axes, filled with one number each, or with text."""
        filled = [0, 0.5, 1, -1, self.low, self.low - 1, self.high, self.high * 2, math.nan, "a"]
        return [np.full((2,) * n, value) for n in self._ndims() for value in filled]


@dataclass(frozen=True)
class Optional(Spec):
    """None, or what ``spec`` accepts. Where parameters are numbers, ``unset`` stands for None.

    Example:
        >>> Optional(Whole(1)).check("chunk_size", None)
    """

    spec: Spec
    unset: float = math.nan

    def stands_for_none(self, value: Any) -> bool:
        """Whether a number, or every one of an array's, is ``unset``."""
        numbers = np.asarray(value)
        same = np.isnan(numbers) if math.isnan(self.unset) else numbers == self.unset
        return bool(np.all(same))

    @property
    def entrywise(self) -> bool:  # type: ignore[override]
        """That of the spec."""
        return self.spec.entrywise

    def check(self, name: str, value: Any) -> Any:
        """None, or the converted value."""
        if value is None:
            return None
        try:
            return self.spec.check(name, value)
        except ValueError as error:
            raise ValueError(f"{error}, or None") from None

    def edges(self) -> list[Any]:
        """Those of the spec."""
        return self.spec.edges()


class ParamCheck:
    """A `Learner.check`: every entry of a parameter is checked by the spec of its name.

    Example:
        >>> ParamCheck({"bonus_scale": Real(low=0)})({"bonus_scale": -1.0})
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1.0; accepted: a finite number >= 0
    """

    def __init__(self, specs: Mapping[str, Spec]):
        """By the name of the parameter."""
        self.specs = specs

    def __call__(self, params: Mapping[str, Any], /) -> None:
        """Raises ValueError, naming the parameter."""
        for name in self.specs.keys() & params.keys():
            spec, array = self.specs[name], np.asarray(params[name])
            for value in np.ravel(array).tolist() if spec.entrywise else [array]:
                if not (isinstance(spec, Optional) and spec.stands_for_none(value)):
                    spec.check(name, value)


def as_params(specs: Mapping[str, Spec], dtype: Any = np.float32, **values: Any) -> dict[str, Any]:
    """The fields ``params`` and ``check`` of a learner whose parameters are numbers, checked already; None becomes the
    spec's ``unset``.

    Example:
        >>> as_params({"bonus_scale": Real(low=0)}, bonus_scale=0.5)["params"]
        {'bonus_scale': np.float32(0.5)}
    """
    unset = {name: spec.unset for name, spec in specs.items() if isinstance(spec, Optional)}
    params = {
        name: _rounded(name, unset[name] if value is None else value, dtype)
        for name, value in values.items()
    }
    return {"params": params, "check": ParamCheck({name: specs[name] for name in values})}


def _rounded(name: str, value: Any, dtype: Any) -> Any:
    """A value in the type of a parameter; one that it cannot hold is an error."""
    with np.errstate(over="ignore"):
        found = np.asarray(value, dtype)[()]
    if (np.isinf(found) & np.isfinite(np.asarray(value, np.float64))).any():
        largest = np.finfo(dtype).max
        raise ValueError(
            f"{name}: {value!r}; accepted: numbers that {np.dtype(dtype)} holds, at most {largest:.4g}"
        )
    return found


def takes(**specs: Spec) -> Callable[[Constructor], Constructor]:
    """Checks and converts the named arguments of a function on every call; defaults are not checked.

    The specs are kept on the function as ``specs``.

    Example:
        >>> @takes(horizon=Whole(1))
        ... def make(horizon, name="x"):
        ...     return horizon
        >>> make(2.0)
        2
        >>> make.specs["horizon"].accepted
        'a whole number, at least 1'
    """

    def wrap(function: Constructor) -> Constructor:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            for name, spec in specs.items():
                if name in given.arguments:
                    value = given.arguments[name]
                    if value is not signature.parameters[name].default:
                        given.arguments[name] = spec.check(name, value)
            return function(*given.args, **given.kwargs)

        checked.specs = {**getattr(function, "specs", {}), **specs}  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return wrap
