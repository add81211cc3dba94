"""Learners by name. A new one is a file like `simple.py` here, or a constructor for `register_learner`."""

from __future__ import annotations

from jaxbandit.learners.base import (
    LEARNERS,
    BlockForm,
    Blocks,
    Learner,
    Problem,
    from_blocks,
    make_learner,
    register_learner,
)
from jaxbandit.learners.expref import expref, ordered_expref
from jaxbandit.learners.policy_gradient import policy_gradient
from jaxbandit.learners.simple import fixed, oracle, uniform
from jaxbandit.learners.ucbvi import ucbvi

__all__ = [
    "LEARNERS",
    "BlockForm",
    "Blocks",
    "Learner",
    "Problem",
    "expref",
    "fixed",
    "from_blocks",
    "make_learner",
    "oracle",
    "ordered_expref",
    "policy_gradient",
    "register_learner",
    "ucbvi",
    "uniform",
]

register_learner("expref", expref)
register_learner("ordered-expref", ordered_expref)
register_learner("ucbvi", ucbvi)
register_learner("policy-gradient", policy_gradient)
register_learner("uniform", uniform)
register_learner("oracle", oracle)
register_learner("fixed", fixed)
