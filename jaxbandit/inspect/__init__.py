"""One of a thing, to look at and not to measure with: one run, one episode, the hardness of one instance.

`single` is a run by the plain loop of the contract (`jb.run`), `tracing` an episode stage by stage
(`jb.trace`), `difficulty` what makes an instance hard (`jb.hardness`).
From outside: the names below. May import: the model, planning, feedback, the contract, `programs`, `record`, `xla`.
"""

from jaxbandit.inspect.hardness import Hardness, hardness
from jaxbandit.inspect.run import Run, run
from jaxbandit.inspect.episode import Episode, trace

__all__ = ["Episode", "Hardness", "Run", "hardness", "run", "trace"]
