"""The model: an MDP is a table of joint outcomes, [H, k+1, A, M], with names and units kept beside it.

`model` holds `MDP`, what can be read off it and the checks of its tables, `labels` holds names and units, `arrays` converts
P [S, A, S] and R [S, A] and gymnasium's tables, `gymnax` makes an MDP an environment with reset and step.
From outside: the names below, and `labels` for packages that print. May import: `checks` and `types`.
"""

from jaxbandit.mdp.arrays import from_arrays, from_gymnasium, to_arrays
from jaxbandit.mdp.gymnax import to_gymnax
from jaxbandit.mdp.labels import label, labels_of, plain
from jaxbandit.mdp.model import (
    MDP,
    canonical,
    checked,
    digest,
    largest_total,
    mean_reward,
    single,
    transition_kernel,
    validate,
)

__all__ = [
    "MDP",
    "canonical",
    "checked",
    "digest",
    "from_arrays",
    "from_gymnasium",
    "label",
    "labels_of",
    "largest_total",
    "mean_reward",
    "plain",
    "single",
    "to_arrays",
    "to_gymnax",
    "transition_kernel",
    "validate",
]
