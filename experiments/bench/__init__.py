"""Speed beside what people use today: ``jaxbandit bench``.

`arena` measures, `worker` is the process in which one contender runs, `cases` and `table` say what
and how; `peers`, `peers_expref` and `peers_numpy` are the contenders. `launches` counts what a GPU
would run, from the text that `hlo` reads. From outside: `main`.
"""

from .arena import main

__all__ = ["main"]
