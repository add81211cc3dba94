"""Figures: curves of regret and metrics, regret against parameters, decisions, maps of states, episodes.

`figures` and `files` hold what all figures share. Every function ``plot_NAME`` of this package is a
figure: `FIGURES` lists them, and ``jaxbandit.plot_NAME`` and ``jaxbandit plot --what NAME`` find them there.
May import: `stats`, `results`, `planning` and the model.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

FIGURES: dict[str, str] = {
    found: file.stem
    for file in sorted(Path(__file__).parent.glob("*.py"))
    for found in re.findall(r"^def (plot_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
}
"""Name of a figure's function -> the module that defines it; nothing is imported before it is used."""

__all__ = ["FIGURES", "Drawn", *FIGURES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = "figures" if name == "Drawn" else FIGURES.get(name)
    if home is None:
        raise AttributeError(f"module 'jaxbandit.plotting' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jaxbandit.plotting.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
