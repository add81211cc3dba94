"""Learners by name: one file each, the simplest in `simple`; a new one is a file like it.

Or a constructor of your own for `register_learner`. `expref` is the paper's algorithm with its phases and presets;
`from_blocks` runs block learners episode by episode. From outside: the names below. May import: the contract
(`jaxbandit.learner`), feedback, theory, `specs`, `checks`, `xla`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.aggregate_po import aggregate_po
from jaxbandit.learners.bandits import epsilon_greedy, exp3, imed, kl_ucb, moss, ucb1
from jaxbandit.learners.expref import expref, ordered_expref
from jaxbandit.learners.expref_shared import expref_shared
from jaxbandit.learners.from_blocks import from_blocks, one_bit
from jaxbandit.learners.phased_bandits import elimination, explore_then_commit, kl_ucb_epochs
from jaxbandit.learners.policy_gradient import policy_gradient
from jaxbandit.learners.prophet_bandit import prophet_bandit
from jaxbandit.learners.prophet_optimism import prophet_optimism
from jaxbandit.learners.psrl import psrl
from jaxbandit.learners.q_learning import q_learning
from jaxbandit.learners.simple import fixed, oracle, uniform
from jaxbandit.learners.thompson import thompson
from jaxbandit.learners.trajectory_ts import trajectory_ts
from jaxbandit.learners.ucb_policies import ucb_policies
from jaxbandit.learners.ucbvi import ucbvi, ucbvi_doubling
from jaxbandit.registry import Registry

__all__ = [
    "LEARNERS",
    "BlockForm",
    "Blocks",
    "Learner",
    "Problem",
    "aggregate_po",
    "elimination",
    "epsilon_greedy",
    "exp3",
    "explore_then_commit",
    "expref",
    "expref_shared",
    "fixed",
    "from_blocks",
    "imed",
    "kl_ucb",
    "kl_ucb_epochs",
    "make_learner",
    "moss",
    "one_bit",
    "oracle",
    "ordered_expref",
    "policy_gradient",
    "prophet_bandit",
    "prophet_optimism",
    "psrl",
    "q_learning",
    "register_learner",
    "thompson",
    "trajectory_ts",
    "ucb1",
    "ucb_policies",
    "ucbvi",
    "ucbvi_doubling",
    "uniform",
]

LEARNERS = Registry("learner")


def make_learner(name: str, **parameters: Any) -> Learner:
    """A registered learner by name; ``jaxbandit.describe(name)`` tells its parameters.

    Under bandit feedback "expref", "ordered-expref", "expref-shared", "policy-gradient",
    "prophet-bandit", "ucb-policies"; with the trajectory or segments "aggregate-po",
    "trajectory-ts"; under semi-bandit feedback "ucbvi", "ucbvi-doubling", "psrl", "q-learning",
    "prophet-optimism"; for K-armed bandits "ucb1", "kl-ucb", "thompson", "imed", "moss",
    "epsilon-greedy", "exp3", "explore-then-commit", "elimination", "kl-ucb-epochs"; yardsticks "uniform", "oracle", "fixed"; or your own.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ucbvi", bonus_scale=0.5).feedback
        'semi-bandit'
    """
    return LEARNERS.make(name, **parameters)


def register_learner(name: str, constructor: Callable[..., Learner]) -> Callable[..., Learner]:
    """Makes ``make_learner(name, ...)`` call your constructor.

    Example:
        >>> import jaxbandit as jb
        >>> def eager():
        ...     return jb.make_learner("ucbvi", bonus_scale=0.05)
        >>> _ = jb.register_learner("eager", eager)
        >>> jb.make_learner("eager").name
        'ucbvi'
        >>> _ = jb.LEARNERS.constructors.pop("eager")      # only to leave the registry as it was
    """
    return LEARNERS.register(name, constructor)


_CONSTRUCTORS: dict[str, Callable[..., Learner]] = {
    "expref": expref,
    "ordered-expref": ordered_expref,
    "expref-shared": expref_shared,
    "ucbvi": ucbvi,
    "ucbvi-doubling": ucbvi_doubling,
    "q-learning": q_learning,
    "prophet-bandit": prophet_bandit,
    "prophet-optimism": prophet_optimism,
    "psrl": psrl,
    "aggregate-po": aggregate_po,
    "trajectory-ts": trajectory_ts,
    "ucb-policies": ucb_policies,
    "policy-gradient": policy_gradient,
    "ucb1": ucb1,
    "kl-ucb": kl_ucb,
    "thompson": thompson,
    "imed": imed,
    "moss": moss,
    "epsilon-greedy": epsilon_greedy,
    "exp3": exp3,
    "explore-then-commit": explore_then_commit,
    "elimination": elimination,
    "kl-ucb-epochs": kl_ucb_epochs,
    "uniform": uniform,
    "oracle": oracle,
    "fixed": fixed,
}
for _name, _constructor in _CONSTRUCTORS.items():
    LEARNERS.register(_name, _constructor)
