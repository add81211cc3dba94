"""Presets of a learner as data: what its repr names in place of a list of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Presets(NamedTuple):
    """Named parameter settings of a learner."""

    defaults: Mapping[str, Any]
    """The value of every parameter; nan is "as in the paper"."""
    values: Mapping[str, Mapping[str, Any]]
    """By preset, what differs from the defaults."""


PRESETS: dict[str, tuple[Presets, ...]] = {}
"""By the name of a learner; several, if its variants have other parameters."""


def describe_params(name: str, params: Mapping[str, Any]) -> str:
    """Parameter values in a few words: the nearest preset and what differs from it, else "name value".

    Example:
        >>> describe_params("mine", {"share": np.float32(0.1), "table": np.zeros((2, 3))})
        'share 0.1, table [2, 3]'
    """
    for presets in PRESETS.get(name, ()):
        if set(presets.defaults) == set(params):
            return _nearest(presets, params)
    shown = []
    for key, value in params.items():
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "fiu":
            shown.append(f"{key} {list(array.shape) or value}")
        elif np.isfinite(array):  # nan and inf stand for no value
            shown.append(f"{key} {array.item():.6g}")
    return ", ".join(shown)


def _nearest(presets: Presets, params: Mapping[str, Any]) -> str:
    found: list[tuple[int, list[str]]] = []
    for preset, values in presets.values.items():
        usual = {**presets.defaults, **values}
        other = [
            _shown(key, value, usual[key])
            for key, value in params.items()
            if not _alike(value, usual[key])
        ]
        found.append((len(other), [f"preset {preset}", *other] if values else other))
    return ", ".join(min(found, key=lambda one: one[0])[1])


def _alike(value: Any, usual: Any) -> bool:
    """Whether a value, or every one of a grid's, is the usual one."""
    one, other = np.asarray(value, np.float64), np.asarray(usual, np.float64)
    return bool(np.all((one == other) | (np.isnan(one) & np.isnan(other))))


def _shown(name: str, value: Any, usual: Any) -> str:
    array = np.asarray(value, np.float64)
    if array.ndim > np.ndim(usual):
        return f"{name} of {len(array)} settings"
    if array.ndim:
        return f"{name} of {int(np.sum(array > 0))} phases"
    return f"{name} {'as in the paper' if np.isnan(array) else f'{float(array):.6g}'}"
