"""Results of sweeps after they have run: on disk, in parts, and beside committed ones.

`io` writes and reads them (`jb.save`, `jb.load`), `selection` takes parts out (`jb.select`,
`jb.final_policy`), `references` are results that come with the package (`jb.reference`, in `data`).
From outside: the names below, which start no jax, and the public ones of the other two modules.
May import: the model, `record`, `sweeps.identity`, `files` and `checks`.
"""

from jaxbandit.results.io import checksum, load, save

__all__ = ["checksum", "load", "save"]
