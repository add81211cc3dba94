"""Results of sweeps after they have run: on disk, in parts, and beside committed ones.

`saving` writes and reads them (`jb.save`, `jb.load`), `selecting` takes parts out (`jb.select`,
`jb.final_policy`), `references` are results that come with the package (`jb.reference`, in `data`).
From outside: the names below, which start no jax, and the public ones of the other two modules.
May import: the model, `record`, `sweeps.identity`, `files` and `checks`.
"""

from jaxbandit.results.saving import checksum, inspect_file, load, save

__all__ = ["checksum", "inspect_file", "load", "save"]
