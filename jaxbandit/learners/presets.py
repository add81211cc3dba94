"""ExpRef, OrderedExpRef and the shared form as users make them: presets over the paper's constants, and
constructors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxbandit.checks import choice
from jaxbandit.learner import BlockForm, Learner
from jaxbandit.learner.presets import PRESETS as KNOWN
from jaxbandit.learner.presets import Presets
from jaxbandit.learners.expref import block_form
from jaxbandit.learners.expref_shared import block_form as shared_block_form
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.learners.parameters import SCHEDULE, check_schedule, epsilon_table
from jaxbandit.learners.phases import PAPER
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
    "expref-shared": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5, "num_phases": 7, "deviations": 2.5,
            "greedy_share": 0.97,
        },
    },
    "ordered-expref-shared": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5, "num_phases": 7, "deviations": 2.5,
            "greedy_share": 0.97, "exploration_scale": 2.5,
        },
    },
}  # fmt: skip
"""By learner and preset: what differs from `DEFAULTS`, the constants of the paper's theorems. The last are
those of "expref-shared" with ``ordered``."""

_ORDERED = {"exploration_scale": 0.5}
_SHARED = {"greedy_share": 0.0, "deviations": np.nan}
DEFAULTS: dict[str, dict[str, Any]] = {
    "expref": PAPER,
    "ordered-expref": {**PAPER, **_ORDERED},
    "expref-shared": {**PAPER, **_SHARED},
    "ordered-expref-shared": {**PAPER, **_ORDERED, **_SHARED},
}
"""nan is "as in the paper", inf "no limit"."""
for _name, _values in PRESETS.items():  # both variants of the shared form have one name
    _learner = _name.removeprefix("ordered-") if _name.endswith("-shared") else _name
    KNOWN[_learner] = (*KNOWN.get(_learner, ()), Presets(DEFAULTS[_name], _values))


Schedule = Array | Callable[[int], Array]


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
    epsilons: Schedule | None = None,
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
    return _made(
        "expref", block_form(ordered=False), preset,
        episodes_scale=episodes_scale, threshold_scale=threshold_scale, threshold=threshold,
        first_epsilon=first_epsilon, ratio=ratio, last_epsilon=last_epsilon, num_phases=num_phases, epsilons=epsilons,
    )  # fmt: skip


def ordered_expref(
    *,
    preset: str | None = None,
    exploration_scale: float | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Schedule | None = None,
) -> Learner:
    """OrderedExpRef for ordered MDPs (Theorem 3.11); it is told the rank of the actions and nothing
    else.

    Args:
        preset: "theory" (the default), "practical", or "practical-paper-exploration" (the paper's k
            / (2H) kept).
        exploration_scale: c; exploration is uniform with probability min(1, c k / H) (paper: 1/2),
            else maximal.
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
        >>> jb.make_learner("ordered-expref").requires
        ('rank',)
    """
    return _made(
        "ordered-expref", block_form(ordered=True), preset, exploration_scale=exploration_scale,
        episodes_scale=episodes_scale, threshold_scale=threshold_scale, threshold=threshold,
        first_epsilon=first_epsilon, ratio=ratio, last_epsilon=last_epsilon, num_phases=num_phases, epsilons=epsilons,
    )  # fmt: skip


def expref_shared(
    *,
    ordered: bool = False,
    preset: str | None = None,
    exploration_scale: float | None = None,
    greedy_share: float | None = None,
    deviations: float | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Schedule | None = None,
) -> Learner:
    """ExpRef in which all levels of a stage share their episodes; the module
    `jaxbandit.learners.expref_shared` says why that is allowed.

    Args:
        ordered: explore as OrderedExpRef does in the stages before the one that is learned, with
            its C_{l,i}; the learner is then told the rank of the actions.
        preset: "theory" (the default) or "practical" (no guarantee).
        exploration_scale: c; with ``ordered``, exploration is uniform with probability
            min(1, c k / H), else maximal.
        greedy_share: g in [0, 1]; from the second phase on, exploration plays alpha-hat of the phase
            before with probability g at every stage (paper: 0).
        deviations: z; actions are kept that are within z standard errors of the best, measured from
            the arms themselves, in place of C_{l,i} eps.
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (by default sqrt(H A ln T / T)).
        num_phases: at most so many phases, and never more than 32.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an
            optax schedule; replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("expref-shared", preset="practical")
        Learner('expref-shared', bandit, preset practical)
        >>> jb.make_learner("expref-shared", ordered=True).requires
        ('rank',)
    """
    choice("ordered", ordered, (False, True))
    if exploration_scale is not None and not ordered:
        raise ValueError(
            f"exploration_scale: {exploration_scale}; accepted: only with ordered=True"
        )
    learner = _made(
        "ordered-expref-shared" if ordered else "expref-shared", shared_block_form(ordered), preset,
        exploration_scale=exploration_scale, greedy_share=greedy_share, deviations=deviations,
        episodes_scale=episodes_scale, threshold_scale=threshold_scale, threshold=threshold,
        first_epsilon=first_epsilon, ratio=ratio, last_epsilon=last_epsilon, num_phases=num_phases, epsilons=epsilons,
    )  # fmt: skip
    return learner._replace(name="expref-shared")


def _made(name: str, form: BlockForm, preset: str | None, **given: Any) -> Learner:
    return from_blocks(
        form,
        name=name,
        params=schedule_params(name, preset, given),
        requires=("rank",) if name.startswith("ordered") else (),
        check=check_schedule,
    )


def schedule_params(name: str, preset: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of ExpRef or OrderedExpRef, float64: given values over the preset's over the
    paper's.

    Example:
        >>> float(schedule_params("expref", "practical", {"threshold": 0.1})["threshold"])
        0.1
    """
    presets = PRESETS[name]
    if preset is not None and preset not in list(presets):
        raise ValueError(f"preset: {preset!r}; accepted: {', '.join(presets)}")
    chosen = {**DEFAULTS[name], **presets[preset or "theory"]}
    for key, value in given.items():
        if value is None:
            continue
        if key == "epsilons":
            chosen[key] = epsilon_table(value)
        else:
            SCHEDULE[key].check(key, value)
            chosen[key] = np.asarray(value, np.float64)
    for one, other in (("threshold", "deviations"), ("deviations", "threshold")):
        if given.get(one) is not None and given.get(other) is None and other in chosen:
            chosen[other] = np.nan  # what is given replaces the preset's way to set the slack
    check_schedule(chosen)
    return {key: np.asarray(value, np.float64) for key, value in chosen.items()}
