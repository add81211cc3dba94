"""Conformance of learners, for the project's own and for yours: `check_learner`.

`conformance` has the checks, `lanes` runs a few lanes on an engine, `summary` is what is returned, `variants` a test
case of chex for test suites. From outside: the names below. May import: the model, the contract, instances, engines.
"""

from jaxbandit.testing.conformance import check_learner
from jaxbandit.testing.lanes import run_lanes
from jaxbandit.testing.summary import Summary
from jaxbandit.testing.variants import LearnerTests

__all__ = ["LearnerTests", "Summary", "check_learner", "run_lanes"]
