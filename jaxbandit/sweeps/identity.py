"""What the numbers of a lane depend on: the configuration of a sweep and the programs of its learners.

A learner *is* what it lowers to (`engines.runner`): at given sizes its identity are the SHA-256 of the StableHLO
texts of its functions, the bytes of its constants, and the text of the engine's program around them. The same digests
key the groups of a sweep, compiled programs and checkpoints. A callback's text does not say what it does, so a learner
with callbacks is like no other, itself in another run included.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import jax
import numpy as np

import jaxbandit
from jaxbandit.mdp import MDP, digest
from jaxbandit.sweeps.arguments import LearnerGrid
from jaxbandit.sweeps.lanes import Cell, Group, Lane, Tile, lanes_of, make_tile_runner, shorten
from jaxbandit.sweeps.options import Settings
from jaxbandit.xla.compat import settings, x64
from jaxbandit.xla.platforms import platform_of, processor

Parts = Mapping[str, str]
"""Digests by name: init, act, update, report, "metric ...", constants, engine."""
SIZES = ("horizon", "width", "num_actions", "num_outcomes")
SHOWN = 100
"""Characters of a line that a difference shows."""


def configuration(
    grids: Mapping[str, LearnerGrid],
    mdps: Mapping[str, MDP],
    groups: Sequence[Group],
    settings: Settings,
) -> dict[str, Any]:
    """The arguments that the numbers of a lane depend on: a checkpoint answers for no others."""
    engines = {name: group.engine for group in groups for name in group.grids}
    return {
        "learners": {
            name: {
                "learner": grid.learner.name,
                "engine": engines[name],
                "varied": list(grid.names),
                # nan is null in JSON
                "params": {
                    key: np.where(np.isnan(values), np.array(None), values).tolist()
                    for key, values in grid.learner.params.items()
                },
            }
            for name, grid in grids.items()
        },
        "instances": {
            name: {size: getattr(mdp, size) for size in SIZES} | {"sha256": digest(mdp)}
            for name, mdp in mdps.items()
        },
        "num_episodes": settings.num_episodes,
        "seed": settings.seed,
        "record": settings.record.describe(),
        "metrics": sorted(settings.metrics),
        "prng": "threefry2x32",
        "jaxbandit": jaxbandit.__version__,
    }


@dataclass
class Identity:
    """The programs of a sweep's lanes, as digests by part."""

    settings: Settings
    groups: Sequence[Group]
    engines: dict[int, str] = field(default_factory=dict)
    """The digests of the engine's programs, by the number of the group, where they are known."""
    _constants: dict[Cell, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Finds the group of a cell."""
        self._where = {cell: at for at, group in enumerate(self.groups) for cell in group.cells}

    def group_of(self, lanes: Iterable[Lane]) -> int | None:
        """The number of the group that runs all these lanes; None if there is none."""
        found = {self._where.get(lane[:3]) for lane in lanes}
        return found.pop() if len(found) == 1 else None

    def parts(self, lanes: Collection[Lane]) -> Parts | None:
        """What these lanes of one group depend on now; None for lanes of no group."""
        index = self.group_of(lanes)
        if index is None:
            return None
        group = self.groups[index]
        cells = sorted({lane[:3] for lane in lanes})
        self._add_constants(group, cells)
        constants = hashlib.sha256("".join(self._constants[cell] for cell in cells).encode())
        found = {**group.parts, "constants": constants.hexdigest()}
        return found | ({"engine": self.engines[index]} if index in self.engines else {})

    def texts(self) -> dict[str, str]:
        """The texts of all functions, by digest."""
        lowered = (each for group in self.groups for each in group.functions.values())
        return {each.digest: each.text for each in lowered}

    def changes(
        self, lanes: Collection[Lane], before: Parts, texts: Mapping[str, str]
    ) -> dict[str, str]:
        """The parts of these lanes that were others before, each with what is known of the change.

        ``texts`` are those that were kept, by digest. Lanes of no group have no changes.
        """
        index, now = self.group_of(lanes), self.parts(lanes)
        found: dict[str, str] = {}
        if index is None or now is None:
            return found
        for name in changed_parts(before, now):
            lowered, old = self.groups[index].functions.get(name), texts.get(before.get(name, ""))
            found[name] = name
            if lowered is not None and lowered.callbacks:
                calls = ", ".join(lowered.callbacks)
                found[name] += f", which calls back ({calls}) and cannot be compared between runs"
            elif lowered is not None and old is not None:
                found[name] += f": {first_difference(old, lowered.text)}"
        return found

    def lower_engines(self, tiles: Iterable[Tile], headers: Iterable[Mapping[str, Any]]) -> bool:
        """Lowers the programs of groups that will run beside what a checkpoint holds; whether some of that is of another.

        Where nothing is left to run, nothing is lowered.
        """
        held: dict[int, set[str]] = {}
        for header in headers:
            index = self.group_of(lanes_of(header))
            if index is not None and "engine" in header.get("program", {}):
                held.setdefault(index, set()).add(header["program"]["engine"])
        for tile in tiles:
            if tile.group in held and tile.group not in self.engines:
                runner = make_tile_runner(self.settings, self.groups[tile.group], tile.lanes)
                self.engines[tile.group] = runner.engine_digest()
        return any(held[index] != {now} for index, now in self.engines.items() if index in held)

    def by_learner(self) -> dict[str, str]:
        """One digest a learner, of all its functions at all sizes; callbacks are named and not compared."""
        found: dict[str, Any] = {}
        for group in self.groups:
            parts = [
                f"{name} {','.join(each.callbacks) or each.digest}"
                for name, each in sorted(group.functions.items())
            ]
            for learner in group.grids:
                total = found.setdefault(learner, hashlib.sha256())
                total.update(f"{group.sizes} {parts}".encode())
        return {name: total.hexdigest()[:16] for name, total in found.items()}

    def _add_constants(self, group: Group, cells: Sequence[Cell]) -> None:
        new = [cell for cell in cells if cell not in self._constants]
        if not new:
            return
        runner = make_tile_runner(self.settings, group, [(*cell, 0) for cell in new])
        with x64():
            _, args = runner.first_lanes(len(new))
            leaves = jax.tree_util.tree_leaves_with_path(args[-1])
        for lane, cell in enumerate(new):
            total = hashlib.sha256()
            for path, leaf in leaves:
                here = np.ascontiguousarray(leaf[lane])
                total.update(f"{jax.tree_util.keystr(path)} {here.dtype} {here.shape};".encode())
                total.update(here.tobytes())
            self._constants[cell] = total.hexdigest()


def changed_parts(before: Parts, now: Parts) -> list[str]:
    """The names of parts that differ; an engine that has not been lowered is not compared.

    Example:
        >>> changed_parts({"act": "a", "engine": "x"}, {"act": "b"})
        ['act']
    """
    names = {*before, *now} - ({"engine"} - (before.keys() & now.keys()))
    return sorted(name for name in names if before.get(name) != now.get(name))


def first_difference(before: str, now: str) -> str:
    """The first lines in which two texts differ.

    Example:
        >>> first_difference("a\\n  b", "a\\n  c")
        '"b" before, "c" now'
    """
    lines = zip_longest(before.splitlines(), now.splitlines(), fillvalue="")
    pair = next(([old.strip(), new.strip()] for old, new in lines if old != new), None)
    if pair is None:
        return "the same text"
    start = max(0, len(os.path.commonprefix(pair)) - SHOWN // 2)  # noqa: RUF071  (of characters)
    cut = "..." if start else ""
    old, new = (cut + shorten(line[start:], SHOWN + 3) for line in pair)
    return f'"{old}" before, "{new}" now'


def backend_fingerprint(device: Any) -> dict[str, str]:
    """What the last digits depend on beyond the configuration: the kind of device, its compiler, its programs' shapes."""
    import jaxlib

    choices = platform_of(device)
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "machine": f"{platform.machine()} {_vectors()}".strip() if device.platform == "cpu" else "",
        "tiles": f"{choices.name} {choices.lanes} {choices.block_lanes} {choices.workers}",
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "flags": " ".join(sorted(os.environ.get("XLA_FLAGS", "").split())),
        **settings(),
    }


def _vectors() -> str:
    """The widest vectors of the processor, where the system tells: XLA compiles for the processor it runs on."""
    said = processor()
    words = {*said.get("flags", "").split(), *said.get("features", "").split()}
    return next((name for name in ("avx512f", "avx2", "avx", "sve", "asimd") if name in words), "")
