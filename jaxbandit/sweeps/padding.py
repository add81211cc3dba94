"""What padding saves in a sweep, or costs: words for the plan.

Where instances are padded (`jaxbandit.engines.padding`) those of several sizes share programs and tiles. That pays while
a step is bound by launches, which do not depend on the lanes; where tiles are full anyway it only moves more bytes. The
estimate says which: a tile's step takes as long as its launches or as its bytes, whichever is longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from jaxbandit.mdp import MDP
from jaxbandit.sweeps.tiles import Group, Lane

LAUNCH_BYTES = 78e6
"""Bytes that move while a step is launched: 20 launches of 2.5 us at 1.56 TB/s, as counted for an A100."""


def apart(group: Group) -> dict[tuple[int, int], Group]:
    """The groups that a padded group would be without padding, by H and k."""
    found: dict[tuple[int, int], dict[str, MDP]] = {}
    for name, mdp in group.instances.items():
        found.setdefault((mdp.horizon, mdp.width), {})[name] = mdp
    return {own: replace(group, instances=each, room=None) for own, each in found.items()}


def step_time(group: Group, tiles: int) -> float:
    """Estimated time of an episode of all lanes of a group, in units of the launches of one step."""
    demand = group.demand
    return tiles * max(1.0, demand.width * demand.moved_per_lane / LAUNCH_BYTES)


def tiles_apart(group: Group, lanes: Iterable[Lane]) -> Mapping[tuple[int, int], int]:
    """Tiles that these lanes of a padded group would take without padding, by H and k."""
    counts: dict[tuple[int, int], int] = {}
    for _, instance, _, _ in lanes:
        mdp = group.instances[instance]
        own = (mdp.horizon, mdp.width)
        counts[own] = counts.get(own, 0) + 1
    groups = apart(group)
    return {own: math.ceil(n / groups[own].demand.width) for own, n in counts.items()}


def in_words(group: Group, lanes: list[Lane]) -> str:
    """A line for the plan: how a group is padded, what that saves, and when it does not pay; or that it is not."""
    if not lanes:
        return ""
    if group.room is None:
        why = "the learner or these sizes do not allow it"
        if group.engine == "blocks":
            why = "the block engine pads nothing, and its runs are short"
        return f"{group.name}: every (H, k) runs apart: {why}"
    H, k = group.room
    groups, without = apart(group), tiles_apart(group, lanes)
    tiles = math.ceil(len(lanes) / group.demand.width)
    padded = step_time(group, tiles)
    plain = sum(step_time(groups[own], count) for own, count in without.items())
    sizes = ", ".join(f"({a}, {b})" for a, b in without)
    text = (
        f"{group.name}: (H, k) = {sizes} run padded, as ({H}, {k}): {_count(1, 'program')} and "
        f"{_count(tiles, 'tile')}, without padding {len(without)} and {sum(without.values())}"
    )
    if padded <= plain:
        return f"{text}; an episode takes about {padded / plain:.2g} of the time (an estimate)"
    return (
        f"{text}; pad=False (--no-pad) takes about {plain / padded:.2g} of the time (an estimate)"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
