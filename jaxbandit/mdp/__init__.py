"""The model: an MDP is a table of joint outcomes, [H, k+1, A, M], with names and units kept beside it.

`model` holds `MDP` and what can be read off it, `checks` refuses tables that are none, `labels` says
what actions and rewards are called.
From outside: the names below, and `labels` for rooms that print. May import: `checks` and `types`.
"""

from jaxbandit.mdp.labels import label, labels_of
from jaxbandit.mdp.model import (
    MDP,
    canonical,
    checked,
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
    "label",
    "labels_of",
    "largest_total",
    "mean_reward",
    "single",
    "transition_kernel",
    "validate",
]
