"""Who climbs the feedback ladder: the learners of every rung, and the parameter of each that is tuned.

The experiment is `ladder`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .families import Size, reachable, support

RUNGS = ("one bit", "bandit", "trajectory", "semi-bandit", "semi-bandit and structure")
YARDSTICKS = ("uniform", "oracle")
TINY, SEGMENTED, PAPER = (3, 2, 3), (6, 2, 3), (15, 2, 5)
"""(H, k, A): of all learners, of the segments, and of the paper."""


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
DEVIATIONS = (1.0, 1.5, 2.0, 2.5, 3.0)
SCALES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
SMALLER_SCALES = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8)
PRACTICAL = {"preset": "practical"}
CONTESTANTS = {
    "ExpRef, one bit": Contestant("one bit", "expref", PRACTICAL, "threshold", THRESHOLDS, True),
    "OrderedExpRef, one bit": Contestant(
        "one bit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS, True
    ),
    "ExpRef": Contestant("bandit", "expref", PRACTICAL, "threshold", THRESHOLDS),
    "OrderedExpRef": Contestant("bandit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS),
    "shared ExpRef": Contestant("bandit", "expref-shared", PRACTICAL, "deviations", DEVIATIONS),
    "shared OrderedExpRef": Contestant(
        "bandit", "expref-shared", {**PRACTICAL, "ordered": True}, "deviations", DEVIATIONS
    ),
    "policy gradient": Contestant(
        "bandit", "policy-gradient", {}, "learning_rate", (0.006, 0.025, 0.1, 0.4, 1.5)
    ),
    "UCB1 over policies": Contestant(
        "bandit", "ucb-policies", {}, "bonus_scale", (0.01, 0.03, 0.1, 0.3, 1.0)
    ),
    "aggregate PO": Contestant(
        "trajectory", "aggregate-po", {}, "learning_rate", (4.0, 16.0, 64.0, 256.0, 1024.0)
    ),
    "trajectory TS": Contestant(
        "trajectory",
        "trajectory-ts",
        {"bonus_scale": 1 / 64},
        "noise_scale",
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    "Q-learning": Contestant(
        "semi-bandit", "q-learning", {}, "bonus_scale", (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16)
    ),
    "PSRL": Contestant("semi-bandit", "psrl", {}, "concentration", (0.3, 1.0, 3.0, 10.0, 30.0)),
    "UCB-VI": Contestant("semi-bandit", "ucbvi", {}, "bonus_scale", SCALES),
    "UCB-VI, Bernstein": Contestant(
        "semi-bandit",
        "ucbvi",
        {"bonus": "bernstein"},
        "bonus_scale",
        (1 / 1024, 1 / 512, 1 / 256, 1 / 128, 1 / 64),
    ),
    "UCB-VI, doubling": Contestant(
        "semi-bandit", "ucbvi-doubling", {}, "bonus_scale", SMALLER_SCALES
    ),
    "prophet optimism": Contestant(
        "semi-bandit and structure", "prophet-optimism", {}, "bonus_scale", SMALLER_SCALES
    ),
}
TINY_ONLY = ("UCB1 over policies", "trajectory TS", "PSRL")
"""The first has too many arms elsewhere, the second factors matrices of (H k A (k+1))^3 operations, and
the third draws H k A (k+3) gamma variates an episode: sixteen runs of two million take an hour."""
PROPHETS_ONLY = ("prophet optimism",)


def contestant(label: str) -> Contestant | None:
    """The contestant of a label, also of "m segments"; None for the yardsticks.

    Example:
        >>> contestant("2 segments").fixed["segments"]
        2
    """
    if "segment" not in label:
        return CONTESTANTS.get(label)
    one = CONTESTANTS["trajectory TS"]
    return one._replace(fixed={**one.fixed, "segments": int(label.split(maxsplit=1)[0])})


def make(label: str, size: Size, index: int | None = None) -> Any:
    """A contestant for MDPs of a size, as a grid over the values of its tuned parameter, or with
    the value of that index.

    Example:
        >>> make("PSRL", TINY).size, make("UCB-VI", TINY, 0).feedback
        (5, 'semi-bandit')
    """
    import jaxbandit as jb

    one = contestant(label)
    assert one is not None
    fixed = dict(one.fixed)
    if one.name == "prophet-optimism":
        fixed["values"] = support(size)
    if one.name == "ucb-policies":
        fixed["reachable"] = reachable(size)
    if index is not None:
        fixed[one.parameter] = one.values[index]
    learner = jb.make_learner(one.name, **fixed)
    learner = jb.one_bit(learner) if one.one_bit else learner
    return jb.grid(learner, **{one.parameter: one.values}) if index is None else learner


def values_of(label: str) -> tuple[float, ...]:
    """The values tried of a learner's parameter; one, whatever it is, for the yardsticks."""
    known = contestant(label)
    return (np.nan,) if known is None else known.values


def contestants(size: Size, prophets: bool) -> list[str]:
    """Who plays at a size: the learners for all families, or those for prophets alone.

    Example:
        >>> contestants(PAPER, prophets=True)
        ['prophet optimism']
    """
    left_out = () if size == TINY else TINY_ONLY
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


def segmented() -> list[str]:
    """Trajectory TS shown the totals of m segments, from one to H."""
    return [f"{m} segment{'s' if m > 1 else ''}" for m in (1, 2, 3, 6)]


def rung_of(label: str) -> str:
    """The rung on which a learner of the results stands; "" for the yardsticks.

    Example:
        >>> rung_of("PSRL"), rung_of("ExpRef (theory)"), rung_of("oracle")
        ('semi-bandit', 'bandit', '')
    """
    known = CONTESTANTS.get(label.removesuffix(" (theory)"))
    return "" if known is None else known.rung
