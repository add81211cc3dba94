"""ExpRef and OrderedExpRef as users make them: presets over the paper's constants, and constructors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxbandit.learner import Learner
from jaxbandit.learner.protocols import Caption
from jaxbandit.learners.expref import MAX_PHASES, block_form
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.learners.parameters import check_schedule, check_schedule_value, epsilon_table
from jaxbandit.types import Array

PRESETS: dict[str, dict[str, dict[str, float]]] = {
    "expref": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.09,
        },
    },
    "ordered-expref": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.09,
            "exploration_scale": 1.25,
        },
        "practical-paper-exploration": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.42, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.125,
            "exploration_scale": 0.5,
        },
    },
}  # fmt: skip
"""By learner and preset: what differs from `DEFAULTS`, the constants of the paper's theorems."""

_PAPER: dict[str, Any] = {
    "episodes_scale": 1.0, "threshold_scale": 1.0, "threshold": np.nan, "first_epsilon": 1.0, "ratio": 0.5,
    "last_epsilon": np.nan, "num_phases": np.inf, "epsilons": np.full(MAX_PHASES, np.nan),
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "expref": _PAPER,
    "ordered-expref": {**_PAPER, "exploration_scale": 0.5},
}
"""nan is "as in the paper", inf "no limit"."""


def _make(name: str, preset: str | None, **given: Any) -> Learner:
    ordered = name == "ordered-expref"
    return from_blocks(
        block_form(ordered),
        name=name,
        params=schedule_params(name, preset, given),
        needs=("rank",) if ordered else (),
        check=check_schedule,
        caption=CAPTIONS[name],
    )


def expref(
    *,
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Array | Callable[[int], Array] | None = None,
) -> Learner:
    """ExpRef for general MDPs (Theorem 3.1). Whatever is not given comes from the preset, else from
    the paper.

    Args:
        preset: "theory" (the default) or "practical".
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (paper: sqrt(H k A ln T / T)).
        num_phases: at most so many phases, and never more than 32.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an
            optax schedule; replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("expref", preset="practical", threshold=0.1)
        Learner('expref', bandit, preset practical, threshold 0.1)
    """
    given = dict(locals())  # the arguments, and nothing else yet
    return _make("expref", **given)


def ordered_expref(
    *,
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    exploration_scale: float | None = None,
    epsilons: Array | Callable[[int], Array] | None = None,
) -> Learner:
    """OrderedExpRef for ordered MDPs (Theorem 3.11); it is told the rank of the actions and nothing
    else.

    Args:
        preset: "theory" (the default), "practical", or "practical-paper-exploration" (the paper's k
            / (2H) kept).
        episodes_scale: as for `expref`, like all arguments that are not named here.
        threshold_scale: as there.
        threshold: as there.
        first_epsilon: as there.
        ratio: as there.
        last_epsilon: as there.
        num_phases: as there.
        exploration_scale: c; exploration is uniform with probability min(1, c k / H) (paper: 1/2),
            else maximal.
        epsilons: as there.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ordered-expref").needs
        ('rank',)
    """
    given = dict(locals())  # the arguments, and nothing else yet
    return _make("ordered-expref", **given)


def schedule_params(name: str, preset: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of ExpRef or OrderedExpRef, float64: given values over the preset's over the
    paper's.

    Example:
        >>> float(schedule_params("expref", "practical", {"threshold": 0.1})["threshold"])
        0.1
    """
    presets = PRESETS[name]
    if preset is not None and preset not in presets:
        raise ValueError(f"preset: {preset!r}; accepted: {', '.join(presets)}")
    chosen = {**DEFAULTS[name], **presets[preset or "theory"]}
    for key, value in given.items():
        if value is None:
            continue
        if key == "epsilons":
            chosen[key] = epsilon_table(value)
        else:
            check_schedule_value(key, value)
            chosen[key] = value
    return {key: np.asarray(value, np.float64) for key, value in chosen.items()}


def preset_caption(
    defaults: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]
) -> Caption:
    """`Learner.caption` of a learner with presets: the nearest one and what differs from it.

    Example:
        >>> said = preset_caption({"bonus_scale": 1.0}, {"theory": {}, "bold": {"bonus_scale": 0.1}})
        >>> said({"bonus_scale": 0.1}), said({"bonus_scale": 0.5})
        ('preset bold', 'bonus_scale 0.5')
    """

    def caption(params: Mapping[str, Any]) -> str:
        found: list[tuple[int, list[str]]] = []
        for preset, values in presets.items():
            usual = {**defaults, **values}
            other = [
                _shown(key, value, usual.get(key))
                for key, value in params.items()
                if not _alike(value, usual.get(key))
            ]
            found.append((len(other), [f"preset {preset}", *other] if values else other))
        _, nearest = min(found, key=lambda one: one[0])
        return ", ".join(nearest)

    return caption


def _alike(value: Any, usual: Any) -> bool:
    """Whether a value, or every one of a grid's, is the usual one."""
    one, other = np.asarray(value, np.float64), np.asarray(usual, np.float64)
    return bool(np.all((one == other) | (np.isnan(one) & np.isnan(other))))


def _shown(name: str, value: Any, usual: Any) -> str:
    array = np.asarray(value, np.float64)
    if array.ndim > np.ndim(usual):
        return f"{name} of {len(array)} settings"
    if name == "epsilons":
        return f"epsilons of {int(np.sum(array > 0))} phases"
    return f"{name} {'as in the paper' if np.isnan(array) else f'{float(array):.6g}'}"


CAPTIONS = {name: preset_caption(DEFAULTS[name], presets) for name, presets in PRESETS.items()}
