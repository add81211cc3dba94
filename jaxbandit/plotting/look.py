"""How the panels of regret look: the options that `plot_regret` and `plot_panels` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from jaxbandit.checks import text


class LookOptions(TypedDict, total=False):
    """What `jaxbandit.plot_regret` and `jaxbandit.plot_panels` both take.

    Fields:
        kind: "t", "skewed", "bootstrap", "simultaneous" or "quantile"; see `jaxbandit.stats.intervals`.
        level: default 0.95, and 0.8 for "quantile".
        scale: "linear" or "loglog".
        bounds: label -> function of the episodes, or array over ``ds.episode``; drawn in grey.
        slope_guides: exponents such as (0.5, 1), only with "loglog".
        phases: short marks on the x axis where phases of ExpRef end (median over runs).
        parameters: indices along the parameter grid, default all.
        key: seeds bootstrap bands.
        colors: learner or label -> colour, in place of the usual ones.
        names: learner or label -> what is written instead.
    """

    kind: str
    level: float | None
    scale: str
    bounds: Mapping[str, Callable[[np.ndarray], Any] | Any] | None
    slope_guides: Sequence[float] | None
    phases: bool
    parameters: Sequence[int] | None
    key: Any
    colors: Mapping[str, str] | None
    names: Mapping[str, str] | None


class PanelLook(NamedTuple):
    """What to draw in a panel: learners, and `LookOptions` with their defaults."""

    learners: Sequence[str] | None = None
    kind: str = "t"
    level: float | None = None
    scale: str = "linear"
    bounds: Mapping[str, Callable[[np.ndarray], Any] | Any] | None = None
    slope_guides: Sequence[float] | None = None
    phases: bool = True
    parameters: Sequence[int] | None = None
    key: Any = 0
    colors: Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None


USUAL = {name: PanelLook._field_defaults[name] for name in LookOptions.__annotations__}
"""The defaults of `LookOptions`."""


def readable(argument: str, value: Any) -> str:
    """``value`` as a text of a figure in which mathematics between dollar signs can be read.

    Example:
        >>> readable("title", "regret, $H = 15$")
        'regret, $H = 15$'
        >>> readable("title", "$x^{$")
        Traceback (most recent call last):
        ...
        ValueError: title: '$x^{$' has mathematics that cannot be read; accepted: text, \\$ for a dollar sign, ...
    """
    from matplotlib.mathtext import MathTextParser

    for line in text(argument, value).split("\n"):
        # as matplotlib tells formulas from amounts: an even number of dollar signs that are not escaped
        dollars = line.count("$") - line.count(r"\$")
        if dollars == 0 or dollars % 2:
            continue
        try:
            MathTextParser("path").parse(line)
        except ValueError:
            raise ValueError(
                f"{argument}: {line!r} has mathematics that cannot be read; accepted: text, "
                r"\$ for a dollar sign, and formulas between two of them that matplotlib draws"
            ) from None
    return value
