"""What of a learner is refused before it runs: declarations and reports that cannot be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import printable
from jaxbandit.feedback import FEEDBACKS, check_kind, feedback_kind
from jaxbandit.learner.fitting import named
from jaxbandit.learner.forms import BlockForm, Learner
from jaxbandit.xla.compat import x64

REQUIRES = ("rank", "optimal_policy")
"""What a learner may ask for beyond the sizes and T."""
COORDINATES = (
    "learner", "instance", "parameter", "seed", "episode", "phase", "stage", "level", "family",
    "action", "outcome",
)  # fmt: skip
"""Names of a result's axes."""
RESERVED = (
    *COORDINATES, "regret", "final_gap", "final_policy", "compile_seconds", "run_seconds",
    "episodes_per_second", "optimal_value", "optimal_policy", "mdp_prob", "mdp_reward", "mdp_next_level",
    "mdp_rank", "mdp_start", "action_name", "level_name", "reward_scale", "reward_unit", "reward_offset",
)  # fmt: skip
"""Names that a result has anyway; a learner's report cannot use them."""
REAL = (jnp.floating, jnp.integer, jnp.bool_)
"""Kinds of numbers that a result has; complex ones would lose half of themselves."""
PHASED = {"phase_end": 1, "active_actions": 3}
"""Reports that results know, with their number of axes: [phase] and [phase, stage, level]."""
TAKEN = (*RESERVED, *PHASED)
"""Names that no parameter has: it becomes a coordinate where it varies."""


def check_contract(learner: Learner) -> Learner:
    """Returns the learner if what it declares can be meant, else raises ValueError or TypeError.

    Checked without running anything: functions can be called, the feedback and what is required is known,
    parameters are numbers. Engines and sweeps call this for every learner they get.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import check_contract
        >>> check_contract(jb.make_learner("uniform")._replace(requires=("ranks",)))
        Traceback (most recent call last):
        ...
        ValueError: learner 'uniform': requires: 'ranks'; accepted: rank, optimal_policy
    """
    if not isinstance(learner, Learner):
        raise TypeError(f"learner: {learner!r}; accepted: a Learner (make_learner makes one)")
    printable("learner", learner.name)

    def refuse(what: str, value: Any, accepted: str) -> None:
        raise ValueError(
            f"learner {learner.name!r}: {what}: {value!r}; accepted: {accepted}"
        ) from None

    try:
        check_kind(learner.feedback)
    except (ValueError, TypeError, AttributeError) as error:
        accepted = str(error).partition("accepted: ")[2] or "a kind of jaxbandit.feedback"
        refuse("feedback", learner.feedback, accepted)
    if not isinstance(learner.requires, tuple | list):
        refuse("requires", learner.requires, f"a tuple of {', '.join(REQUIRES)}")
    for field in learner.requires:
        if not isinstance(field, str) or field not in REQUIRES:
            refuse("requires", field, ", ".join(REQUIRES))
    if not isinstance(learner.params, Mapping) and not _is_nothing(learner.params):
        refuse("params", learner.params, "a dictionary, name -> number or array")
    for name, value in dict(learner.params).items():
        if not isinstance(name, str) or name in TAKEN:
            refuse("params", name, f"names other than {', '.join(TAKEN)}")
        _check_name(learner, "params", name)
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            refuse(f"params: {name}", value, "numbers and arrays of numbers")
        if (
            array.dtype.kind in "iu"
            and (large := array[(array < -(2**31)) | (array >= 2**31)]).size
        ):
            refuse(
                f"params: {name}", int(large[0]), "whole numbers of 32 bits; larger ones as floats"
            )
    _check_functions(learner, ("init", "act", "update"), refuse)
    if learner.blocks is not None:
        if not isinstance(learner.blocks, BlockForm):
            refuse("blocks", learner.blocks, "a BlockForm, or None")
        _check_functions(learner.blocks, ("init", "next_block", "absorb"), refuse)
        if feedback_kind(learner.feedback).sums is None:
            known = [kind.name for kind in FEEDBACKS.values() if kind.sums is not None]
            only = f"{' or '.join(known)} in block form, which is given sums alone"
            refuse("feedback", learner.feedback, only)
        functions = {name: getattr(learner, name) for name in ("init", "act", "update")}
        forms = {name: _block_form(function) for name, function in functions.items()}
        if any(form is not None for form in forms.values()):
            others = [name for name, form in forms.items() if form != learner.blocks]
            if others:
                what = f"of other functions than its {' and '.join(others)}"
                refuse("blocks", what, "None, or the block form of the new functions")
    return learner


def _check_name(learner: Learner, what: str, name: str) -> None:
    """That a result can have a variable or coordinate of this name."""
    printable(f"learner {learner.name!r}: {what}", name)
    if "/" in name:  # a path in a file of results
        raise ValueError(f"learner {learner.name!r}: {what}: {name!r}; accepted: names without '/'")


def _block_form(function: Any) -> BlockForm | None:
    """The form of which `from_blocks` made a function."""
    form = getattr(getattr(function, "__self__", None), "form", None)
    return form if isinstance(form, BlockForm) else None


def _is_nothing(params: Any) -> bool:
    return isinstance(params, tuple) and not params


def _check_functions(form: Any, needed: tuple[str, ...], refuse: Any) -> None:
    """Functions of a Learner or BlockForm can be called; the optional ones may be missing."""
    optional = ("report", "constants", "check")
    for field in (*needed, *(name for name in optional if name in form._fields)):
        value = getattr(form, field)
        if not callable(value) and (field in needed or value is not None):
            refuse(field, value, "a function" if field in needed else "a function, or None")


def check_report(learner: Learner, state: Any) -> dict[str, Any]:
    """The names, shapes and dtypes that ``learner.report`` gives for a lane with this state.

    Nothing is computed: ``state`` may be arrays or their shapes (`jax.eval_shape`). Raises
    ValueError for names that results have anyway and for what is no array of numbers. For the block
    engine give ``learner._replace(report=learner.blocks.report)`` and the block form's state.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import check_report
        >>> boastful = jb.make_learner("uniform")._replace(report=lambda state: {"regret": 0.0})
        >>> check_report(boastful, ())
        Traceback (most recent call last):
        ...
        ValueError: learner 'uniform': report: 'regret'; accepted: names other than learner, ...
    """
    if learner.report is None:
        return {}

    def refuse(value: str, accepted: str) -> None:
        raise ValueError(f"learner {learner.name!r}: report: {value}; accepted: {accepted}")

    try:
        with x64(), named(learner.name, "report"):
            found = jax.eval_shape(lambda given: dict(learner.report(given)), state)  # type: ignore[misc]
    except (TypeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise ValueError(
            f"learner {learner.name!r}: report: fails for this state ({message}); "
            "accepted: a function of the state that returns a dictionary, name -> array"
        ) from error
    taken = (*RESERVED, *dict(learner.params))  # but PHASED, which are reports
    for name, value in found.items():
        if not isinstance(name, str) or not name or name in taken:
            refuse(repr(name), f"names other than {', '.join(taken)}")
        _check_name(learner, "report", name)
        dtype = getattr(value, "dtype", None)
        if dtype is None or not any(jnp.issubdtype(dtype, kind) for kind in REAL):
            refuse(f"{name}: {getattr(value, 'dtype', type(value).__name__)}", "arrays of numbers")
        axes = PHASED.get(name)
        if axes is not None and len(value.shape) != axes:
            refuse(f"{name}: shape {tuple(value.shape)}", f"{axes} axes (a phase's number first)")
    return found
