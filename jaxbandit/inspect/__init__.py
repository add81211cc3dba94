"""One of a thing, to look at: one run, one episode, the hardness of one instance, this machine.

`run` is a sweep of one lane (`jb.run`), `episode` an episode stage by stage (`jb.trace`), `hardness` what makes an
instance hard (`jb.hardness`), `doctor` a look at the machine (``jaxbandit doctor``).
From outside: the names below. May import: engines and sweeps.
"""

from jaxbandit.inspect.episode import Episode, trace
from jaxbandit.inspect.hardness import Hardness, hardness
from jaxbandit.inspect.run import Run, lane_key, run

__all__ = ["Episode", "Hardness", "Run", "hardness", "lane_key", "run", "trace"]
