"""Families of instances that several experiments draw: copies, random laws, registered families."""

from __future__ import annotations

from typing import Any

import numpy as np

Size = tuple[int, int, int]
"""(H, k, A)."""


def support(size: Size) -> np.ndarray:
    """The values of I1, [H, A].

    Example:
        >>> support((2, 1, 3)).tolist()
        [[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]]
    """
    horizon, _, num_values = size
    return np.tile(np.linspace(0, 1, num_values), (horizon, 1))


def random_laws(size: Size, count: int, root: int) -> list[Any]:
    """Prophet instances on the support of I1 whose laws are drawn uniformly."""
    import jaxbandit as jb

    horizon, capacity, num_values = size
    random = np.random.default_rng([root, *size])
    laws = random.dirichlet(np.ones(num_values), (count, horizon))
    return [
        jb.make_instance("prophet", values=support(size), probabilities=law, capacity=capacity)
        for law in laws
    ]


def uniform_laws(size: Size, count: int) -> Any:
    """I1 ``count`` times: one instance, whose copies play with randomness of their own, as seeds do."""
    import jax
    import jax.numpy as jnp

    import jaxbandit as jb

    horizon, capacity, num_values = size
    mdp = jb.make_instance(
        "prophet-uniform", horizon=horizon, capacity=capacity, num_values=num_values
    )
    return jax.tree.map(lambda x: jnp.stack([x] * count), mdp)


def drawn(name: str, size: Size, count: int, root: int) -> Any:
    """Draws of a registered random family; sizes have keys of their own.

    Knapsacks have H items, the budget k and A - 1 outcomes each.
    """
    import jax

    import jaxbandit as jb

    horizon, capacity, num_values = size
    sizes = {"capacity": capacity, "num_values": num_values}
    if name == "knapsack-random":
        sizes = {"budget": capacity, "num_outcomes": num_values - 1}
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(root), horizon), capacity)
    return jb.family(name, count=count, key=key, horizon=horizon, **sizes)
