"""What a checkpoint file holds, as bytes: named arrays and a header, with a checksum.

A file is a magic word, the SHA-256 of what follows, and an uncompressed npz with a JSON header. Nothing is pickled, and
a stranger's file is refused before it can ask for more memory than it has bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAGIC = b"jaxbandit-1\n"


@dataclass(frozen=True)
class Saved:
    """What a checkpoint file holds: named arrays and a JSON header."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def encode(saved: Saved) -> bytes:
    """A checkpoint file's content.

    Example:
        >>> from jaxbandit.sweeps.saved import Saved, decode, encode
        >>> import numpy as np
        >>> decode(encode(Saved({"step": 3}, {"x": np.arange(2)}))).header
        {'step': 3}
    """
    for name, array in saved.arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name}: dtype {array.dtype}; accepted: plain numbers")
    buffer = io.BytesIO()
    header = np.frombuffer(json.dumps(saved.header).encode(), np.uint8)
    named: dict[str, Any] = {f"array:{name}": array for name, array in saved.arrays.items()}
    np.savez(buffer, header=header, **named)
    payload = buffer.getvalue()
    return MAGIC + hashlib.sha256(payload).digest() + payload


def decode(content: bytes) -> Saved:
    """The inverse of `encode`; ValueError if the content is not whole."""
    start = len(MAGIC) + 32
    payload = content[start:]
    if (
        content[: len(MAGIC)] != MAGIC
        or hashlib.sha256(payload).digest() != content[len(MAGIC) : start]
    ):
        raise ValueError("truncated or corrupted (its checksum does not match)")
    try:
        return _unpacked(payload)
    except Exception as error:  # made by somebody else, on purpose or not: zip and numpy raise much
        raise ValueError(f"not written by a sweep ({error})") from error


def _unpacked(payload: bytes) -> Saved:
    """Arrays and header; nothing is unpickled, and nothing larger than the file is made."""
    with zipfile.ZipFile(io.BytesIO(payload)) as parts:
        packed = [each for each in parts.infolist() if each.compress_type != zipfile.ZIP_STORED]
        if packed or sum(each.file_size for each in parts.infolist()) > len(payload):
            raise ValueError("compressed")
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        arrays = {
            name.removeprefix("array:"): file[name] for name in file.files if name != "header"
        }
        header = json.loads(file["header"].tobytes())
    if not isinstance(header, dict):
        raise ValueError("no header")
    wrong = [name for name, right in ENTRIES.items() if name in header and not right(header[name])]
    if wrong:
        raise ValueError(f"its {', '.join(wrong)}")
    return Saved(header, arrays)


def missing(saved: Saved, finished: bool) -> list[str]:
    """What a file of finished lanes, or of a tile under way, lacks or has in a wrong shape; a stranger's may lack anything.

    Example:
        >>> missing(Saved({"lanes": [["U", "I", 0, 0]], "name": "a"}, {"regret": np.array([[np.nan]])}), finished=True)
        ['compile_seconds', 'run_seconds', 'regret']
    """
    names = ("lanes", "compile_seconds", "run_seconds", "name" if finished else "episodes")
    found = [name for name in names if name not in saved.header]
    if not finished or found[:1] == ["lanes"]:
        return found
    lanes = len(saved.header["lanes"])
    found += [
        name
        for name, array in saved.arrays.items()
        if array.shape[:1] != (lanes,) or array.dtype.kind not in "fiub"
    ]
    regret = saved.arrays.get("regret", np.array(np.nan))
    whole = regret.dtype == np.float64 and bool(np.isfinite(regret).all())
    return found if whole else [*found, "regret"]


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 2**63


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _lanes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(lane, list)
            and [type(each) for each in lane] == [str, str, int, int]
            and min(lane[2:]) >= 0
            for lane in value
        )
    )


ENTRIES: dict[str, Callable[[Any], bool]] = {
    "lanes": _lanes,
    "name": lambda value: isinstance(value, str),
    "bits": lambda value: isinstance(value, list) and all(map(_texts, value)),
    "program": _texts,
    "generation": _whole,
    "episodes": _whole,
    "compile_seconds": _seconds,
    "run_seconds": _seconds,
}
"""Entries of headers, and whether a value can be theirs."""
