"""Checkpoints, from which a killed sweep continues: flat arrays, atomic writes, checksums, two generations.

A checkpoint directory belongs to one configuration (`Store` refuses any other) and holds

    config.json              the configuration, readable
    done-<batch>.jbk         results of finished lanes, so that more seeds later run only the new ones
    carry-<batch>.<0|1>.jbk  state of a batch that is under way, the last two generations

A file is a magic word, the SHA-256 of what follows, and an uncompressed npz with a JSON header; nothing is
pickled. It is written under a temporary name in the same directory, flushed to disk, renamed, and the
directory flushed: a kill or a power cut leaves the old file or the new one, never half of one. A file whose
checksum is wrong is reported and not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"jaxbandit-1\n"
MARK = ".unfinished"
"""Temporary names end with this; leftovers of a killed process are swept away by the next one."""


class CheckpointError(RuntimeError):
    """The checkpoint cannot be used or written; the message says why and what to do."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint file holds: named arrays and a JSON header."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` (so that renaming is atomic) that no other process uses."""
    return path.with_name(f"{path.name}.{os.getpid()}{MARK}")


def replace_file(unfinished: Path, path: Path) -> None:
    """Flushes ``unfinished`` to disk, renames it to ``path`` and flushes the directory."""
    with open(unfinished, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a whole file or nothing; an OSError leaves the old file and no temporary one."""
    unfinished = temporary_name(path)
    try:
        unfinished.write_bytes(content)
        replace_file(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def encode(saved: Saved) -> bytes:
    """A checkpoint file's content.

    Example:
        >>> from jaxbandit.checkpoint import Saved, decode, encode
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
    if content[: len(MAGIC)] != MAGIC or hashlib.sha256(payload).digest() != content[len(MAGIC) : start]:
        raise ValueError("truncated or corrupted (its checksum does not match)")
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        arrays = {name.removeprefix("array:"): file[name] for name in file.files if name != "header"}
        return Saved(json.loads(file["header"].tobytes()), arrays)


def fingerprint(config: Mapping[str, Any]) -> str:
    """SHA-256 of the configuration as canonical JSON."""
    return hashlib.sha256(_canonical(config).encode()).hexdigest()


def differences(here: Any, there: Any, path: str = "") -> list[str]:
    """The fields in which two configurations differ, as "field: 1 in the checkpoint, 2 now"."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        keys = [*there, *(key for key in here if key not in there)]
        inner = (
            differences(here.get(k, "absent"), there.get(k, "absent"), f"{path}.{k}" if path else k)
            for k in keys
        )
        return [line for lines in inner for line in lines]
    if here == there:
        return []
    short = [text if len(text) <= 60 else text[:57] + "..." for text in (json.dumps(there), json.dumps(here))]
    return [f"{path}: {short[0]} in the checkpoint, {short[1]} now"]


class Store:
    """The checkpoint directory of one configuration.

    Example:
        >>> import tempfile, numpy as np
        >>> from jaxbandit.checkpoint import Saved, Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, {"seed": 0})
        ...     store.save_carry("a", Saved({"episodes": 100}, {"x": np.zeros(2)}))
        ...     Store(folder, {"seed": 0}).load_carry("a").header["episodes"]
        100
    """

    def __init__(self, directory: str | os.PathLike[str], config: Mapping[str, Any], resume: bool = True):
        """Opens or makes the directory; ``resume=False`` throws away what it holds.

        Raises CheckpointError if it belongs to another configuration or cannot be written.
        """
        self.directory = Path(directory)
        self.fingerprint = fingerprint(config)
        self._generation: dict[str, int] = {}
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for leftover in self.directory.glob(f"*{MARK}"):
                leftover.unlink(missing_ok=True)
            if not resume:
                for old in [*self.directory.glob("*.jbk"), self.directory / "config.json"]:
                    old.unlink(missing_ok=True)
            self._check(config)
            write_atomically(self.directory / "config.json", json.dumps(config, indent=1).encode())
        except OSError as error:
            raise CheckpointError(
                f"checkpoint: cannot write to {self.directory} ({error}); "
                "accepted: a directory with write access and free space"
            ) from error

    def _check(self, config: Mapping[str, Any]) -> None:
        path = self.directory / "config.json"
        if not path.exists():
            return
        try:
            there = json.loads(path.read_bytes())
        except ValueError:
            # Every file carries the fingerprint too, so nothing of another configuration can slip in.
            warnings.warn(f"checkpoint: {path} is corrupted and is written anew", stacklevel=4)
            return
        if fingerprint(there) != self.fingerprint:
            lines = differences(json.loads(_canonical(config)), there)
            shown = "; ".join(lines[:6]) + (f"; and {len(lines) - 6} more" if len(lines) > 6 else "")
            raise CheckpointError(
                f"checkpoint: {self.directory} belongs to another configuration ({shown}); "
                "give another directory, the same configuration, or resume=False to throw its content away"
            )

    def save_done(self, name: str, saved: Saved) -> None:
        """Keeps the results of finished lanes, then drops their carry."""
        self._write(self.directory / f"done-{name}.jbk", saved)
        self.discard_carry(name)

    def save_carry(self, name: str, saved: Saved) -> None:
        """Keeps the state of a batch, in place of the older of its two generations."""
        if name not in self._generation:
            self.load_carry(name)
        generation = self._generation.get(name, 0) + 1
        slot = self._generations(name)[generation % 2]
        self._write(slot, Saved({**saved.header, "generation": generation}, saved.arrays))
        self._generation[name] = generation

    def load_carry(self, name: str) -> Saved | None:
        """The newest whole generation of a batch's state, or None."""
        found = [self._read(path) for path in self._generations(name) if path.exists()]
        whole = [saved for saved in found if saved is not None]
        if not whole:
            return None
        newest = max(whole, key=lambda saved: saved.header["generation"])
        self._generation[name] = newest.header["generation"]
        return newest

    def carries(self) -> list[str]:
        """Names of the batches that are under way."""
        return sorted(
            {path.name[len("carry-") :].rsplit(".", 2)[0] for path in self.directory.glob("carry-*.jbk")}
        )

    def load_done(self) -> list[Saved]:
        """The results of all finished lanes; files that are not whole are reported and removed."""
        loaded = (self._read(path) for path in sorted(self.directory.glob("done-*.jbk")))
        return [saved for saved in loaded if saved is not None]

    def discard_carry(self, name: str) -> None:
        """Forgets a batch that is under way."""
        for path in self._generations(name):
            path.unlink(missing_ok=True)

    def _generations(self, name: str) -> list[Path]:
        return [self.directory / f"carry-{name}.{slot}.jbk" for slot in (0, 1)]

    def _write(self, path: Path, saved: Saved) -> None:
        content = encode(Saved({**saved.header, "fingerprint": self.fingerprint}, saved.arrays))
        try:
            write_atomically(path, content)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint: cannot write {path} ({error}); what was saved before is intact: "
                f"make room and run again with checkpoint={str(self.directory)!r} to continue from it"
            ) from error

    def _read(self, path: Path) -> Saved | None:
        """A file's content; None, with a warning, if it is not whole."""
        try:
            saved = decode(path.read_bytes())
        except (ValueError, OSError, KeyError) as error:
            warnings.warn(
                f"checkpoint: {path} is not used: {error}; "
                "its part of the sweep goes back to the checkpoint before it",
                stacklevel=3,
            )
            path.unlink(missing_ok=True)
            return None
        if saved.header["fingerprint"] != self.fingerprint:
            raise CheckpointError(
                f"checkpoint: {path} belongs to another configuration; remove it or give another directory"
            )
        return saved


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"))
