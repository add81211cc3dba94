"""Studies: sweeps that are planned while they run, from what the statistics say so far.

`sequential` adds seeds until learners are told apart, `tuning` looks for a learner's best
parameters, `hooks` has functions for ``on_chunk``.
From outside: the names below. May import: `sweeps`, `stats` and everything below them.
"""

from jaxbandit.studies.sequential import Decided, Judge, Look, until_decided
from jaxbandit.studies.tuning import Candidate, Range, Round, Tuned, Tuner, tune

__all__ = [
    "Candidate",
    "Decided",
    "Judge",
    "Look",
    "Range",
    "Round",
    "Tuned",
    "Tuner",
    "tune",
    "until_decided",
]
