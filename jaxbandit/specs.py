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

from jaxbandit.checks import choice, number, whole

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

    def good(self) -> list[Any]:
        """Some accepted values, ends of the range included."""
        return []

    def odd(self) -> list[Any]:
        """Some values that are refused."""
        return [object(), "", b"\x00", [], {}, math.nan]


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
        bounds = [f"{'>' if self.above else '>='} {self.low:g}"] if math.isfinite(self.low) else []
        if math.isfinite(self.high):
            bounds.append(f"{'<' if self.below else '<='} {self.high:g}")
        accepted = " ".join(["a finite number", " and ".join(bounds)]).strip()
        try:
            seen = number(name, value, low=self.low, high=self.high, above=self.above)
        except ValueError:
            seen = math.nan
        if math.isnan(seen) or (self.below and seen == self.high):
            raise ValueError(f"{name}: {value!r}; accepted: {accepted}")
        return seen

    def good(self) -> list[Any]:
        """Ends of the range, and something between."""
        low = self.low if math.isfinite(self.low) else -2.0
        high = self.high if math.isfinite(self.high) else low + 4.0
        inside = [low + (high - low) * share for share in (0.25, 0.5)]
        ends = [*([] if self.above else [low]), *([] if self.below else [high])]
        return [*inside, *ends, np.float32(inside[0])]

    def odd(self) -> list[Any]:
        """Beyond the ends, no numbers, numbers that are not finite."""
        beyond = [self.low - 1] if math.isfinite(self.low) else []
        beyond += [self.high + 1] if math.isfinite(self.high) else []
        beyond += [self.low] if self.above else []
        beyond += [self.high] if self.below else []
        return [*super().odd(), *beyond, math.inf, True, 1j, np.zeros(2)]


def Probability(*, open_ends: bool = False) -> Real:  # noqa: N802  (reads as the specs beside it)
    """A number in [0, 1], or in (0, 1) with ``open_ends``.

    Example:
        >>> Probability().check("share", 0.25)
        0.25
    """
    return Real(0, 1, above=open_ends, below=open_ends)


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

    def good(self) -> list[Any]:
        """The smallest, the next ones, and other types of whole numbers."""
        high = self.low + 2 if self.high is None else min(self.high, self.low + 2)
        return [self.low, high, float(self.low), np.int64(self.low)]

    def odd(self) -> list[Any]:
        """Beyond the ends, fractions, no numbers."""
        beyond = [] if self.high is None else [self.high + 1]
        return [*super().odd(), *beyond, self.low - 1, self.low + 0.5, math.inf, True, np.ones(2)]


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

    def good(self) -> list[Any]:
        """All of them."""
        return list(self.values)

    def odd(self) -> list[Any]:
        """Anything else."""
        return [*super().odd(), "no such choice", 10**9]


Flag = Choice(False, True)
"""True or False."""


@dataclass(frozen=True)
class Values(Spec):
    """An array of finite numbers with ``axes`` named axes, each in [low, high].

    Example:
        >>> Values("K", low=0, high=1).check("means", [0.1, 0.9]).tolist()
        [0.1, 0.9]
        >>> Values("K", low=0, high=1).check("means", [0.1, 1.5])
        Traceback (most recent call last):
        ...
        ValueError: means: 1.5 at [1]; accepted: finite numbers of shape [K], >= 0 and <= 1
    """

    axes: str
    """Names of the axes, separated by blanks: "H A"."""
    entrywise = False
    low: float = -math.inf
    high: float = math.inf

    def check(self, name: str, value: Any) -> np.ndarray:
        """As a float64 array."""
        bounds = [f">= {self.low:g}"] if math.isfinite(self.low) else []
        bounds += [f"<= {self.high:g}"] if math.isfinite(self.high) else []
        shape = f"[{', '.join(self.axes.split())}]"
        accepted = f"finite numbers of shape {shape}"
        accepted += f", {' and '.join(bounds)}" if bounds else ""
        try:
            given = np.asarray(value)
            array = given.astype(np.float64) if given.dtype.kind in "fiu" else None
        except (TypeError, ValueError, OverflowError):
            array = None
        if array is None:
            raise ValueError(f"{name}: {str(value)[:80]}; accepted: {accepted}")
        if array.ndim != len(self.axes.split()) or array.size == 0:
            raise ValueError(f"{name}: shape {list(array.shape)}; accepted: {accepted}")
        wrong = ~np.isfinite(array) | (array < self.low) | (array > self.high)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(f"{name}: {array[at]!s} at {list(at)}; accepted: {accepted}")
        return array

    def good(self) -> list[Any]:
        """Two and three entries along each axis."""
        low = self.low if math.isfinite(self.low) else 0.0
        high = self.high if math.isfinite(self.high) else low + 1.0
        axes = len(self.axes.split())
        return [np.linspace(low, high, n**axes).reshape((n,) * axes) for n in (2, 3)]

    def odd(self) -> list[Any]:
        """Other numbers of axes, none, text, numbers beyond the ends."""
        axes = len(self.axes.split())
        right = (2,) * axes
        filled = [math.nan, math.inf]
        filled += [self.low - 1] if math.isfinite(self.low) else []
        filled += [self.high + 1] if math.isfinite(self.high) else []
        arrays = [np.full(right, value) for value in filled]
        return [*super().odd(), np.zeros((2,) * (axes + 1)), np.full(right, "a"), *arrays]


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

    def good(self) -> list[Any]:
        """None and those of the spec."""
        return [None, *self.spec.good()]

    def odd(self) -> list[Any]:
        """Those of the spec."""
        return self.spec.odd()


def check_all(specs: Mapping[str, Spec], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, those with a spec checked and converted.

    Example:
        >>> check_all({"horizon": Whole(1)}, {"horizon": 3.0, "name": "x"})
        {'horizon': 3, 'name': 'x'}
    """
    return {
        name: specs[name].check(name, value) if name in specs else value
        for name, value in values.items()
    }


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
