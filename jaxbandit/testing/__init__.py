"""Conformance of learners, for the project's own and for yours: `check_learner`.

`conformance` calls the checks of `functions` (the learner by itself, `longrun` for many episodes)
and of `on_engines` (lanes, chunks, traces); `lookalikes` makes episodes and MDPs that a feedback
cannot tell apart, `lanes` runs a few lanes, `trees` compares, `summary` is what is returned.
`variants` is a test case of chex for test suites: compiled, plain, with arguments on a device.
From outside: the names below. May import: the model, the contract, instances and engines.
"""

from jaxbandit.testing.conformance import check_learner
from jaxbandit.testing.lanes import run_lanes
from jaxbandit.testing.summary import Summary
from jaxbandit.testing.variants import LearnerTests

__all__ = ["LearnerTests", "Summary", "check_learner", "run_lanes"]
