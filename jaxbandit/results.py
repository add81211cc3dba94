"""Results on disk: netCDF, compressed, written atomically, never overwritten unless told.

The files open with anything that reads netCDF-4 / HDF5. All attributes of the Dataset (the configuration as
JSON, versions, date) travel with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandit.checkpoint import replace_file, temporary_name

if TYPE_CHECKING:
    import xarray


def save(dataset: xarray.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Writes the Dataset of a sweep as compressed netCDF and returns the path.

    The file appears under its name only when it is complete, also after a crash or on a full disk.

    Example:
        >>> import jaxbandit as jb, tempfile, xarray
        >>> ds = xarray.Dataset({"regret": ("episode", [0.5, 1.0])}, attrs={"config": "{}"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = jb.save(ds, f"{folder}/run.nc")
        ...     jb.load(path).identical(ds)
        True
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"path: {path} exists; give another name, or overwrite=True to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = temporary_name(path)
    try:
        dataset.to_netcdf(unfinished, engine="h5netcdf", encoding=_encoding(dataset))
        replace_file(unfinished, path)
    except OSError as error:
        raise OSError(error.errno, f"cannot write the results to {path}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def load(path: str | os.PathLike[str]) -> xarray.Dataset:
    """Reads a file written by `save` into memory; the same Dataset, bit for bit.

    Example: see `save`.
    """
    import xarray

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path: {path} does not exist; accepted: a file written by jaxbandit.save")
    try:
        with xarray.open_dataset(path, engine="h5netcdf") as dataset:
            # what xarray remembers of the file would make a second save differ from the first
            return dataset.load().drop_encoding()
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"path: {path} is not readable as netCDF ({error}); accepted: a file written by jaxbandit.save"
        ) from error


def _encoding(dataset: xarray.Dataset) -> dict[str, dict[str, Any]]:
    """Compression for numbers; scalars and strings cannot have any."""
    squeeze = {"zlib": True, "complevel": 4, "shuffle": True}
    return {
        str(name): squeeze
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "fiub" and variable.ndim > 0 and variable.size > 0
    }
