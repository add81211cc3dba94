"""What a checkpoint file holds, as bytes: named arrays and a header, with a checksum.

A file is a magic word, the SHA-256 of what follows, and an uncompressed npz with a JSON header. Nothing is pickled, and
a stranger's file is refused before it can ask for more memory than it has bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
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
    return Saved(header, arrays)
