"""A small instance of every family, to look at."""

from __future__ import annotations

import inspect
from typing import Any

from jaxbandit.instances import INSTANCES, make_instance
from jaxbandit.mdp import MDP

SMALL: dict[str, Any] = {
    "horizon": 8,
    "capacity": 2,
    "num_values": 5,
    "num_actions": 3,
    "width": 2,
    "budget": 3,
    "num_downs": 2,
    "gap": 0.25,
    "num_arms": 5,
    "means": [0.2, 0.5, 0.8],
    "values": [[1, 3, 8], [2, 4, 6], [0, 5, 9], [1, 2, 7]],
    "rewards": [[3, 1], [2, 4], [5, 1], [2, 2]],
    "costs": [[1, 0], [1, 2], [2, 1], [1, 1]],
}
"""What is taken for parameters that are not given."""


def small_instance(
    name: str, given: dict[str, Any] | None = None, seed: int = 0
) -> tuple[MDP, dict[str, str]]:
    """The instance, with small values for what is not given, and the parameters that it got.

    Example:
        >>> mdp, parameters = small_instance("prophet-random", {"horizon": 3})
        >>> mdp, parameters["key"]
        (MDP(H=3, k=2, A=5, ordered), 'jax.random.key(0)')
    """
    import jax

    given = given or {}
    if name not in INSTANCES.constructors:
        make_instance(name)  # raises the error that names near matches
    wanted = inspect.signature(INSTANCES.constructors[name]).parameters
    drawn = "key" in wanted and not {"theta", "down_stages", "down_actions"} & set(given)
    needed = [key for key, p in wanted.items() if p.default is p.empty]
    if "horizon" in wanted and isinstance(wanted["horizon"].default, int):
        needed.append("horizon")  # a default may be long
    if name.startswith("hard-"):
        needed += ["gap"] + (["horizon", "num_downs"] if drawn else [])
    if name == "bandit" and "probabilities" not in given:
        needed += ["means"]
    chosen = {key: SMALL[key] for key in needed if key in SMALL and key in wanted}
    used = {**chosen, **given}
    if "probabilities" in needed and "probabilities" not in used:
        rows = used["values" if "values" in wanted else "rewards"]
        used["probabilities"] = [[1 / len(row)] * len(row) for row in rows]
    shown = used or {key: p.default for key, p in wanted.items()}
    told = {key: _shortened(value) for key, value in shown.items()}
    if drawn:
        used["key"], told["key"] = jax.random.key(seed), f"jax.random.key({seed})"
    return make_instance(name, **used), told


def _shortened(value: Any) -> str:
    """Lists of numbers with three digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(_shortened, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
