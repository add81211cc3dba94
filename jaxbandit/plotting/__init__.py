"""Figures: curves of regret and metrics, regret against parameters, decisions, maps of states, episodes.

`figures` holds what all figures share. Every function ``plot_NAME`` of this package is a
figure: `FIGURES` lists them, and ``jaxbandit.plot_NAME`` and ``jaxbandit plot --what NAME`` find them there.
May import: `stats`, `results`, `planning` and the model.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """Where a figure is defined, and what it is drawn of."""

    module: str
    of: str
    """The name of its first argument: "ds" is the Dataset of a sweep."""


FIGURES: dict[str, Figure] = {
    name: Figure(file.stem, first)
    for file in sorted(Path(__file__).parent.glob("*.py"))
    for name, first in re.findall(
        r"^def (plot_\w+)\(\s*(\w+)", file.read_text(encoding="utf-8"), re.MULTILINE
    )
}
"""By the name of the function; nothing is imported before it is used."""

__all__ = ["FIGURES", "Drawn", "Figure", *FIGURES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = "figures" if name == "Drawn" else FIGURES[name].module if name in FIGURES else None
    if home is None:
        raise AttributeError(f"module 'jaxbandit.plotting' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jaxbandit.plotting.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
