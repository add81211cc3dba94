"""Colours and line styles of curves: fixed for the learners of the paper, in order for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Okabe and Ito's colours, which stay apart for all common kinds of colour vision. The learners of
# the paper have theirs in every figure; line styles differ too, for prints in grey.
_KNOWN = {"orderedexpref": ("#D55E00", 1), "expref": ("#0072B2", 0), "ucbvi": ("#009E73", 2)}
_OTHERS = ("#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7A00")
_LINES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.2)), (0, (4, 1.4, 1.2, 1.4, 1.2, 1.4)),
)  # fmt: skip


class Style(NamedTuple):
    """How a learner is drawn."""

    color: str
    line: Any


def styles(names: Sequence[str]) -> dict[str, Style]:
    """A colour and a line style for each name: fixed for the learners of the paper, in order for
    others.

    Variants of a learner ("UCB-VI, bonus_scale = 0.5") share its hue in other tones and line
    styles.

    Example:
        >>> styles(["UCB-VI", "ExpRef"])["ExpRef"].color
        '#0072B2'
    """
    chosen: dict[str, Style] = {}
    used = dict.fromkeys(_KNOWN, 0)
    others = 0
    for name in sorted(
        names, key=lambda name: _plain(name) not in _KNOWN
    ):  # exact names keep the base style
        base = next((known for known in _KNOWN if _plain(name).startswith(known)), None)
        if base is None:
            color, line, variant = (
                _OTHERS[others % len(_OTHERS)],
                3 + others,
                others // len(_OTHERS),
            )
            others += 1
        else:
            (color, line), variant = _KNOWN[base], used[base]
            used[base] += 1
        style = _LINES[(line + variant) % len(_LINES)]
        taken = [other.line for other in chosen.values()]
        free = [one for one in (style, *_LINES[3:], *_LINES) if one not in taken]
        chosen[name] = Style(_tone(color, variant), free[0] if free else style)
    return {name: chosen[name] for name in names}


def ramp(color: str, count: int) -> list[str]:
    """``count`` tones of one colour from light to dark, for the values of one parameter in order.

    Example:
        >>> ramp("#0072B2", 3)
        ['#8CC0DC', '#0072B2', '#003350']
    """
    from matplotlib.colors import to_hex, to_rgb

    base = np.array(to_rgb(color))
    tones = []
    for place in np.linspace(-0.55, 0.55, count) if count > 1 else [0.0]:
        target = np.ones(3) if place < 0 else np.zeros(3)
        red, green, blue = base + abs(place) * (target - base)
        tones.append(to_hex((red, green, blue)).upper())
    return tones


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _tone(color: str, variant: int) -> str:
    """The colour itself, then darker and lighter by turns."""
    from matplotlib.colors import to_hex, to_rgb

    share = (0.0, 0.4, 0.3, 0.7, 0.45)[variant % 5]
    target = np.zeros(3) if variant % 2 else np.ones(3)
    red, green, blue = (1 - share) * np.array(to_rgb(color)) + share * target
    return to_hex((red, green, blue)).upper()
