"""One of a thing, to look at and not to measure with: one run, one episode, the hardness of one instance.

`single` is a run by the plain loop of the contract (`jb.run`), `tracing` an episode stage by stage
(`jb.trace`), `difficulty` what makes an instance hard (`jb.hardness`).
From outside: the names below. May import: the model, planning, feedback, the contract, `programs`, `record`, `xla`.
"""

from jaxbandit.inspecting.difficulty import Hardness, hardness
from jaxbandit.inspecting.single import Run, run
from jaxbandit.inspecting.tracing import Episode, trace

__all__ = ["Episode", "Hardness", "Run", "hardness", "run", "trace"]
