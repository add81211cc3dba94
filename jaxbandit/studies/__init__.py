"""Studies: sweeps that are planned while they run, from what the statistics say so far.

`sequential` adds seeds until learners are told apart, `tuning` looks for a learner's best
parameters, `hooks` has functions for ``on_chunk``.
From outside: what `sequential` and `tuning` list in their ``__all__``, and `hooks`. May import: `sweeps`, `stats` and everything below them.
"""

from jaxbandit.studies import sequential, tuning
from jaxbandit.studies.sequential import *  # noqa: F403
from jaxbandit.studies.tuning import *  # noqa: F403

__all__ = [*sequential.__all__, *tuning.__all__]  # noqa: PLE0604
