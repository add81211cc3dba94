"""Studies: sweeps that are planned while they run, from what the statistics say so far.

`deciding` adds seeds until learners are told apart, `racing` and `tuning` look for a learner's best
parameters, `spaces` says where.
From outside: the names below. May import: `sweeps`, `stats` and everything below them.
"""

from jaxbandit.studies.deciding import Decided, Judge, Look, until_decided
from jaxbandit.studies.racing import Candidate, Round, Tuner
from jaxbandit.studies.spaces import Range
from jaxbandit.studies.tuning import Tuned, tune

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
