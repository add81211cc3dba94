"""Results on disk: netCDF, compressed, written atomically, never overwritten unless asked.

The files open with anything that reads netCDF-4 / HDF5. All attributes of the Dataset (the
configuration as JSON, versions, date) travel with it, and so do two checksums: of all bytes, behind
the end of HDF5's part, which is checked before HDF5 reads any of them (damage can make it end the
process); and of everything that `load` gives back, which survives a program that packs the file
anew. A file in which anything has changed is refused, and so is one that would make HDF5 read
other files or more than it can hold.
"""

from __future__ import annotations

import errno
import hashlib
import io
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit import checks
from jaxbandit.files import read_file, write_atomically
from jaxbandit.results.axes import index_parameters

if TYPE_CHECKING:
    import xarray

SUFFIX = ".nc"
CHECKSUM = "jaxbandit_checksum"
"""The attribute of the file that holds the checksum; `load` takes it off again."""
SEAL = b"\njaxbandit bytes sha256:"
"""What the checksum of all bytes before it begins with; 64 digits and a line's end follow."""
MOST_INFLATION = 1100
"""Bytes of data per byte of file: zlib cannot compress more than 1032 to 1."""
FILTERS = {1, 2, 3}
"""zlib, shuffle and Fletcher's checksum; HDF5 would look for others in libraries of the machine."""
DEEPEST = 8
"""Groups inside each other."""
NUMBERS = "fiubcmM"
"""Kinds of data that are no text."""
WRITTEN_BY = "accepted: a file written by jaxbandit.save"


def save(dataset: xarray.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Writes the Dataset of a sweep as compressed netCDF (a name that ends in .nc) and returns the
    path.

    The file appears under its name only when it is complete, also after a crash or on a full disk. Of several processes
    that save one new name at once, one succeeds. A link is followed; a file that is replaced keeps its mode.

    Example:
        >>> import jaxbandit as jb, tempfile, xarray
        >>> ds = xarray.Dataset({"regret": ("episode", [0.5, 1.0])}, attrs={"config": "{}"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = jb.save(ds, f"{folder}/run.nc")
        ...     jb.load(path).identical(ds)
        True
    """
    checks.dataset("dataset", dataset)
    path, overwrite = _path(path), checks.choice("overwrite", overwrite, (False, True))
    if path.suffix != SUFFIX:
        raise ValueError(f"path: {path}; accepted: a name that ends in {SUFFIX} (netCDF)")
    try:
        check_texts(dataset)
        content = _encode(dataset)
    except (TypeError, ValueError) as error:
        raise ValueError(f"dataset: cannot be written as netCDF ({error})") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(path, content, overwrite=overwrite)
    except FileExistsError:
        raise FileExistsError(
            f"path: {path} exists; give another name, or overwrite=True to replace it"
        ) from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write the results to {path}: {error}") from error
    return path


def _encode(dataset: xarray.Dataset) -> bytes:
    """The file's content, with the checksum of what a reader will see in it.

    It is made in memory: where a disk is full, HDF5 does not raise an error but ends the process.
    """
    import h5netcdf
    import h5py
    from xarray.backends import H5NetCDFStore

    memory = io.BytesIO()
    with H5NetCDFStore(h5netcdf.File(memory, "w")) as store:
        dataset.dump_to_store(store, encoding=_encoding(dataset))
    value = checksum(_read(memory))
    with h5py.File(memory, "r+") as file:
        file.attrs[CHECKSUM] = value
    return sealed(memory.getvalue())


def sealed(content: bytes) -> bytes:
    """A file's content with the checksum of its bytes; HDF5 does not look behind its end.

    Example:
        >>> len(sealed(b"content")) - len(b"content")
        89
    """
    return content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n"


def _seal_broken(content: bytes) -> bool:
    """Whether bytes have changed; not where there is no seal, which other programs do not write."""
    inner = content[: -len(sealed(b""))]
    return SEAL in content[len(inner) :] and content != sealed(inner)


def load(path: str | os.PathLike[str]) -> xarray.Dataset:
    """Reads a file written by `save` into memory; the same Dataset, bit for bit.

    A file that is damaged or was changed since is a ValueError, and so is a pipe, a device or a file that needs more than
    half of this machine's memory. One without a checksum, made by another program, is read with a warning.

    Example: see `save`.
    """
    path = _path(path)
    try:
        content = read_file(path, follow=True)
    except FileNotFoundError:
        raise FileNotFoundError(f"path: {path} does not exist; {WRITTEN_BY}") from None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EFBIG):
            raise  # what the system forbids to read is its own error
        raise ValueError(f"path: {path}: {error.strerror}; {WRITTEN_BY}") from None
    damaged = f"path: {path} is damaged, or was changed after it was written"
    if _seal_broken(content):
        raise ValueError(f"{damaged} (the checksum of its bytes does not match); {WRITTEN_BY}")
    try:
        _inspect_file(io.BytesIO(content), len(content))
        dataset = _read(io.BytesIO(content))
        check_texts(dataset)
    except Exception as error:  # HDF5 answers damage with errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"path: {path} is not readable as netCDF ({reason}); {WRITTEN_BY}"
        ) from error
    noted = dataset.attrs.pop(CHECKSUM, None)
    if noted is None:
        warnings.warn(
            f"{path} has no checksum: it was not written by jaxbandit.save, "
            "and whether it is what was meant cannot be checked",
            stacklevel=2,
        )
    elif noted != checksum(dataset):
        raise ValueError(f"{damaged} (its checksum does not match); {WRITTEN_BY}")
    return index_parameters(dataset)


def _path(path: Any) -> Path:
    try:
        text = os.fspath(path)
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError):  # a surrogate cannot stand in a file's name
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError(f"path: {path!r}; accepted: the name of a file")
    return Path(text)


def _read(file: io.BytesIO) -> xarray.Dataset:
    import xarray

    with xarray.open_dataset(file, engine="h5netcdf") as dataset:
        # what xarray remembers of the file would make a second save differ from the first
        return dataset.load().drop_encoding()


def check_texts(dataset: xarray.Dataset) -> None:
    r"""An error if a text in the Dataset would do something when it is printed, drawn or put into a page.

    Names are those that a sweep accepts (`checks.printable`); other texts may have several lines.

    Example:
        >>> import xarray
        >>> check_texts(xarray.Dataset(attrs={"created": "\x1b[31mred"}))
        Traceback (most recent call last):
        ...
        ValueError: created: name '\x1b[31mred' has the character '\x1b'; accepted: text without control characters
    """
    for place, names in (("variables", dataset.variables), ("axes", dataset.dims)):
        for name in names:
            checks.printable(place, str(name))
    for place, text in _texts(dataset):
        for line in text.replace("\t", " ").split("\n"):
            if line.strip(" "):
                checks.printable(place, line, at_most=len(line))


def _texts(dataset: xarray.Dataset) -> Iterator[tuple[str, str]]:
    """All texts that are not numbers, each with where it stands."""
    variables = dataset.variables
    values = {name: variable.values for name, variable in variables.items()}
    for held in (values, dataset.attrs, *(variable.attrs for variable in variables.values())):
        for key, value in held.items():
            yield "attributes", str(key)
            array = np.asarray(value)
            if array.dtype.kind not in NUMBERS:
                yield from ((str(key), text) for text in dict.fromkeys(map(str, array.ravel())))


def _inspect_file(content: io.BytesIO, size: int) -> None:
    """An error if reading the file of ``size`` bytes would open another one, or need more than it can hold.

    What has several names is looked at once.
    """
    import h5py

    most = MOST_INFLATION * size + 2**20
    total, seen = 0, set()
    with h5py.File(content, "r") as file:
        groups: list[tuple[h5py.Group, int]] = [(file, 0)]
        for group, depth in groups:
            if depth > DEEPEST:
                raise ValueError("its groups are nested too deeply")
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ValueError(f"{name!r} is a link to another place")
                member = h5py.h5o.open(group.id, name.encode("utf-8", "surrogateescape"))
                place = h5py.h5o.get_info(member).addr
                if place in seen:
                    continue
                seen.add(place)
                if isinstance(member, h5py.h5d.DatasetID):
                    total += _inspect_dataset(name, member, most)
                elif isinstance(member, h5py.h5g.GroupID):
                    groups.append((h5py.Group(member), depth + 1))
    if total > most:
        raise ValueError(f"it declares {total:,} bytes of data, more than it can hold")


def _inspect_dataset(name: str, dataset: Any, most: int) -> int:
    """The bytes that it declares."""
    import h5py

    made = dataset.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL or made.get_external_count():
        raise ValueError(f"{name!r} keeps its data in another file")
    if not {made.get_filter(j)[0] for j in range(made.get_nfilters())} <= FILTERS:
        raise ValueError(f"{name!r} is compressed in an unknown way")
    item = dataset.dtype.itemsize
    size = math.prod(dataset.shape) * item
    if made.get_layout() == h5py.h5d.CHUNKED:
        size = max(size, math.prod(made.get_chunk()) * item)
    if size > most:
        raise ValueError(f"{name!r} declares {size:,} bytes, more than the file can hold")
    return size


def checksum(dataset: xarray.Dataset) -> str:
    """SHA-256 of all that a Dataset says: names, types, dimensions, values and attributes.

    Example:
        >>> import xarray
        >>> one, other = (xarray.Dataset({"x": ("n", [0.0, end])}) for end in (1.0, 1.0000001))
        >>> checksum(one) == checksum(one.copy()), checksum(one) == checksum(other)
        (True, False)
    """
    total = hashlib.sha256()
    for name in sorted(map(str, dataset.variables)):
        variable = dataset.variables[name]
        role = "coordinate" if name in dataset.coords else "data"
        _add(total, [role, name, *map(str, variable.dims)], variable.values)
        _add_attributes(total, variable.attrs)
    own = {name: value for name, value in dataset.attrs.items() if name != CHECKSUM}
    _add_attributes(total, own)
    return f"sha256:{total.hexdigest()}"


def _add_attributes(total: Any, attributes: Any) -> None:
    for name in sorted(map(str, attributes)):
        _add(total, ["attribute", name], np.asarray(attributes[name]))


def _add(total: Any, names: list[str], array: np.ndarray) -> None:
    """Adds names and an array, each with its length, so that no two contents look the same."""
    numbers = array.dtype.kind in NUMBERS
    kind = array.dtype.newbyteorder("<").str if numbers else "text"
    head = repr([names, kind, array.shape]).encode("utf-8", "surrogatepass")
    if numbers:
        body = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
    else:
        body = repr([str(item) for item in array.ravel()]).encode("utf-8", "surrogatepass")
    total.update(f"{len(head)} {len(body)};".encode() + head + body)


def _encoding(dataset: xarray.Dataset) -> dict[str, dict[str, Any]]:
    """Compression for numbers; scalars and strings cannot have any."""
    squeeze = {"zlib": True, "complevel": 4, "shuffle": True}
    return {
        str(name): squeeze
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "fiub" and variable.ndim > 0 and variable.size > 0
    }
