"""Results of sweeps: labelled arrays, on disk, in parts, and beside committed ones.

`dataset` makes the Dataset of a sweep and takes parts out (`jb.select`, `jb.final_policy`), `axes` says what its axes are, `io`
writes and reads it (`jb.save`, `jb.load`), `references` are results that come with the package
(`jb.reference`, in `data`).
From outside: the names below, which start no jax, and the public ones of the other modules.
May import: the model, `record`, `engines`, `files` and `checks`.
"""

from jaxbandit.results.io import checksum, load, save

__all__ = ["checksum", "load", "save"]
