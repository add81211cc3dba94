"""Who climbs the feedback ladder: the learners of every rung, and the parameter of each that is tuned.

The experiment is `ladder`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

RUNGS = ("one bit", "bandit", "trajectory", "semi-bandit", "semi-bandit and structure")
YARDSTICKS = ("uniform", "oracle")
TINY, PAPER = (3, 2, 3), (15, 2, 5)
"""(H, k, A)."""


class Contestant(NamedTuple):
    """A learner of the ladder: how it is made and what is tuned."""

    rung: str
    name: str
    """As in `make_learner`."""
    fixed: dict[str, Any]
    parameter: str
    values: tuple[float, ...]
    one_bit: bool = False


THRESHOLDS = (0.03, 0.064, 0.125, 0.25, 0.5)
SCALES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
PRACTICAL = {"preset": "practical"}
CONTESTANTS = {
    "ExpRef, one bit": Contestant("one bit", "expref", PRACTICAL, "threshold", THRESHOLDS, True),
    "OrderedExpRef, one bit": Contestant(
        "one bit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS, True
    ),
    "ExpRef": Contestant("bandit", "expref", PRACTICAL, "threshold", THRESHOLDS),
    "OrderedExpRef": Contestant("bandit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS),
    "shared ExpRef": Contestant("bandit", "expref-shared", PRACTICAL, "threshold", THRESHOLDS),
    "shared OrderedExpRef": Contestant(
        "bandit", "expref-shared", {**PRACTICAL, "ordered": True}, "threshold", THRESHOLDS
    ),
    "policy gradient": Contestant(
        "bandit", "policy-gradient", {}, "learning_rate", (0.1, 0.4, 1.5, 6.0, 24.0)
    ),
    "UCB1 over policies": Contestant(
        "bandit", "ucb-policies", {}, "bonus_scale", (0.03, 0.1, 0.3, 0.6, 1.0)
    ),
    "aggregate PO": Contestant(
        "trajectory", "aggregate-po", {}, "learning_rate", (1.0, 4.0, 16.0, 64.0, 256.0)
    ),
    "trajectory TS": Contestant(
        "trajectory",
        "trajectory-ts",
        {"bonus_scale": 1 / 64},
        "noise_scale",
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    "Q-learning": Contestant(
        "semi-bandit", "q-learning", {}, "bonus_scale", (0.0, 1 / 256, 1 / 128, 1 / 64, 1 / 32)
    ),
    "PSRL": Contestant("semi-bandit", "psrl", {}, "concentration", (0.3, 1.0, 3.0, 10.0, 30.0)),
    "UCB-VI": Contestant("semi-bandit", "ucbvi", {}, "bonus_scale", SCALES),
    "UCB-VI, doubling": Contestant("semi-bandit", "ucbvi-doubling", {}, "bonus_scale", SCALES),
    "prophet optimism": Contestant(
        "semi-bandit and structure", "prophet-optimism", {}, "bonus_scale", SCALES
    ),
}
TINY_ONLY = ("UCB1 over policies", "trajectory TS")
"""The first has too many arms elsewhere, the second factors matrices of (H k A (k+1))^3 operations."""
SLOW = ("PSRL",)
"""At the paper's size these play with --full alone."""
PROPHETS_ONLY = ("prophet optimism",)


def support(size: tuple[int, int, int]) -> np.ndarray:
    """The values of I1, [H, A].

    Example:
        >>> support((2, 1, 3)).tolist()
        [[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]]
    """
    horizon, _, num_values = size
    return np.tile(np.linspace(0, 1, num_values), (horizon, 1))


def make(label: str, size: tuple[int, int, int], **more: Any) -> Any:
    """A contestant for MDPs of a size, as a grid over the values of its tuned parameter.

    Example:
        >>> make("PSRL", TINY).size, make("UCB-VI", TINY).learner.feedback
        (5, 'semi-bandit')
    """
    import jaxbandit as jb

    one = CONTESTANTS[label]
    fixed = {**one.fixed, **more}
    if one.name == "prophet-optimism":
        fixed["values"] = support(size)
    learner = jb.make_learner(one.name, **fixed)
    learner = jb.one_bit(learner) if one.one_bit else learner
    return jb.grid(learner, **{one.parameter: one.values})


def values_of(label: str) -> tuple[float, ...]:
    """The values tried of a learner's parameter; one, whatever it is, for the yardsticks."""
    known = CONTESTANTS.get("trajectory TS" if "segment" in label else label)
    return (np.nan,) if known is None else known.values


def contestants(size: tuple[int, int, int], prophets: bool, full: bool = False) -> list[str]:
    """Who plays at a size: the learners for all families, or those for prophets alone.

    Example:
        >>> contestants(PAPER, prophets=True)
        ['prophet optimism']
    """
    left_out = () if size == TINY else TINY_ONLY if full else TINY_ONLY + SLOW
    return [
        label
        for label in CONTESTANTS
        if label not in left_out and (label in PROPHETS_ONLY) == prophets
    ]


def yardsticks() -> dict[str, Any]:
    """Learners that learn nothing, and those of the paper with the theorems' constants."""
    import jaxbandit as jb

    theory = {
        f"{label} (theory)": jb.make_learner(name)
        for label, name in (("ExpRef", "expref"), ("OrderedExpRef", "ordered-expref"))
    }
    return {name: jb.make_learner(name) for name in YARDSTICKS} | theory


def segmented() -> dict[str, Any]:
    """Trajectory TS shown the totals of m = 1..H segments."""
    return {
        f"{m} segment{'s' if m > 1 else ''}": make("trajectory TS", TINY, segments=m)
        for m in range(1, TINY[0] + 1)
    }


def rung_of(label: str) -> str:
    """The rung on which a learner of the results stands; "" for the yardsticks.

    Example:
        >>> rung_of("PSRL"), rung_of("ExpRef (theory)"), rung_of("oracle")
        ('semi-bandit', 'bandit', '')
    """
    known = CONTESTANTS.get(label.removesuffix(" (theory)"))
    return "" if known is None else known.rung
