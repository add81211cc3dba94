"""The instances of a sweep: given one by one, or several under one name, which are then a family.

`family` draws many instances of one kind. Instances of one shape become an array axis, so a sweep over
them compiles once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxbandit import checks
from jaxbandit.mdp import MDP, canonical
from jaxbandit.mdp.labels import carry

MOST_DRAWS = 10**6


class Instances(Mapping[str, MDP]):
    """The single instances of a sweep by name, each with the name under which the user gave it.

    Instances given together under one name (a stack, a list) are replicates of one family; an
    instance given alone is a family of its own, whatever its name looks like.
    """

    def __init__(self, members: Mapping[str, MDP], families: Mapping[str, str]):
        """``families``: the family of every member."""
        self._members, self.families = dict(members), dict(families)

    def __getitem__(self, name: str) -> MDP:
        """The instance of that name."""
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        """The names, in the order given."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)


def family(name: str, *, count: int, key: jax.Array, **parameters: Any) -> MDP:
    """``count`` draws of a random instance, stacked on a leading axis; draw j uses ``fold_in(key,
    j)``.

    In a sweep, ``instances={"I2": family(...)}`` becomes "I2/0", "I2/1", ..., which share one
    panel.

    Example:
        >>> import jaxbandit as jb, jax
        >>> sizes = dict(horizon=5, capacity=2, num_values=3)
        >>> draws = jb.family("prophet-random", count=8, key=jax.random.key(1), **sizes)
        >>> draws.prob.shape
        (8, 5, 3, 3, 3)
    """
    from jaxbandit.instances import make_instance
    from jaxbandit.instances.checks import single_key

    count = checks.whole("count", count, at_most=MOST_DRAWS, what="a whole number of draws")
    single_key(key)
    return stack(
        [make_instance(name, key=jax.random.fold_in(key, j), **parameters) for j in range(count)]
    )


def stack(instances: list[MDP]) -> MDP:
    """Instances of one shape on a leading axis, as numpy arrays."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *instances)


def expand_instances(instances: Mapping[str, MDP | Iterable[MDP]]) -> Instances:
    """Single instances by name; a stack or a list called "I" becomes "I/0", "I/1", ..., which are
    replicates of the family "I".

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> expand_instances({"A/k=2": mdp, "B": [mdp, mdp]}).families
        {'A/k=2': 'A/k=2', 'B/0': 'B', 'B/1': 'B'}
    """
    checks.names("instances", instances)
    expanded: dict[str, MDP] = {}
    families: dict[str, str] = {}
    for name, given in instances.items():
        for draw, mdp in _draws(name, given).items():
            if draw in expanded:
                raise ValueError(
                    f"instances: {draw!r} is named twice; give every instance its own name"
                )
            try:
                plain = (leaf if leaf is None else np.asarray(leaf) for leaf in canonical(mdp))
                expanded[draw] = carry(mdp, MDP(*plain))
            except ValueError as error:
                raise ValueError(f"instances[{draw!r}]: {error}") from error
            families[draw] = name
    return Instances(expanded, families)


def _draws(name: str, given: Any) -> dict[str, MDP]:
    """The instances given under one name."""
    if isinstance(given, MDP) and np.ndim(given.prob) == 5:
        if not len(given.prob):
            raise ValueError(f"instances[{name!r}]: an empty stack; accepted: at least one MDP")
        return {
            f"{name}/{j}": MDP(*(leaf if leaf is None else leaf[j] for leaf in given))
            for j in range(len(given.prob))
        }
    if isinstance(given, MDP):
        return {name: given}
    if isinstance(given, list | tuple) and given and all(isinstance(m, MDP) for m in given):
        return {f"{name}/{j}": mdp for j, mdp in enumerate(given)}
    raise TypeError(
        f"instances[{name!r}]: {type(given).__name__}; "
        "accepted: an MDP (make_instance), a stack or a non-empty list of them (jb.family)"
    )


def shape_of(mdp: MDP) -> tuple[Any, ...]:
    """What instances must share to run side by side: H, k, A, M, the types, and having a rank or
    not."""
    return (
        mdp.horizon,
        mdp.width,
        mdp.num_actions,
        mdp.num_outcomes,
        str(mdp.prob.dtype),
        mdp.rank is not None,
    )
