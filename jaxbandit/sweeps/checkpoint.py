"""Checkpoints, from which a killed sweep continues: flat arrays, atomic writes, checksums, two generations.

A checkpoint directory belongs to one configuration (`Store` refuses any other) and holds

    config.json              the configuration, readable
    done-<tile>.jbk          results of finished lanes: more seeds later run only the new ones
    carry-<tile>.<0|1>.jbk   state of a tile that is under way, the last two generations
    stale-*                  files of learners that are other programs now
    text-<digest>.gz         what a function lowered to, to say what has changed
    *.damaged                files with a wrong checksum
    lock                     held by the sweep that uses the directory

A .jbk file is a magic string, the SHA-256 of what follows, and an uncompressed npz with a JSON header: nothing is pickled,
and an untrusted file is refused before it asks for more memory than it has bytes. Files are written by
`files.write_atomically`: a kill or a power cut leaves the old file or the new one. A file that cannot be read stops the
sweep; one with a wrong checksum is renamed and its lanes run again; none is deleted. All that config.json says of files is
in them, too, so its loss loses nothing. Names of files come from their lanes, so the directories of the shards of a
sweep, copied into one, are the checkpoint of the whole sweep.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.errors import CheckpointError
from jaxbandit.files import FolderLock, lock_folder, read_file, write_atomically
from jaxbandit.sweeps.lanes import Lane, lanes_of

if TYPE_CHECKING:
    from jaxbandit.sweeps.identity import Identity

MAGIC = b"jaxbandit-1\n"
CONFIG = "config.json"
LARGEST_CONFIG = 2**26
"""Bytes of config.json that are read."""
LARGEST_TEXT = 2**16
"""Bytes of a compressed text that is kept."""


@dataclass(frozen=True)
class CheckpointFile:
    """The content of a .jbk file: a JSON header and named arrays."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def encode(saved: CheckpointFile) -> bytes:
    """The bytes of a .jbk file.

    Example:
        >>> from jaxbandit.sweeps.checkpoint import CheckpointFile, decode, encode
        >>> import numpy as np
        >>> decode(encode(CheckpointFile({"step": 3}, {"x": np.arange(2)}))).header
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


def decode(content: bytes) -> CheckpointFile:
    """The inverse of `encode`; ValueError if the content is not whole."""
    start = len(MAGIC) + 32
    payload = content[start:]
    right = MAGIC + hashlib.sha256(payload).digest()
    if content[:start] != right:
        raise ValueError("truncated or corrupted (its checksum does not match)")
    try:
        return _unpacked(payload)
    except Exception as error:  # an untrusted file: zip, numpy and json raise errors of many kinds
        raise ValueError(f"not written by a sweep ({error})") from error


def _unpacked(payload: bytes) -> CheckpointFile:
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
    return CheckpointFile(header, arrays)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _lane(value: Any) -> bool:
    types = [type(each) for each in value] if isinstance(value, list) else []
    return types == [str, str, int, int] and min(value[2:]) >= 0


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 2**63


HEADER: dict[str, Callable[[Any], bool]] = {
    "lanes": lambda value: isinstance(value, list) and bool(value) and all(map(_lane, value)),
    "compile_seconds": _seconds,
    "run_seconds": _seconds,
    "bits": lambda value: isinstance(value, list) and all(map(_texts, value)),
    "program": _texts,
}
"""Entries of every header, with their checks."""
DONE = {"name": lambda value: isinstance(value, str)}
CARRY = dict.fromkeys(
    ("episodes", "generation"), lambda value: type(value) is int and 0 <= value < 2**63
)


def wrong_entries(saved: CheckpointFile, finished: bool) -> list[str]:
    """Entries that a file of finished lanes, or of a tile under way, lacks or has with a wrong type or shape.

    Example:
        >>> header = {"lanes": [["U", "I", 0, 0]], "name": "a", "bits": [], "program": {}}
        >>> wrong_entries(CheckpointFile(header, {"regret": np.array([[np.nan]])}), finished=True)
        ['compile_seconds', 'run_seconds', 'regret']
    """
    header = saved.header
    expected = HEADER | (DONE if finished else CARRY)
    found = [
        name for name, valid in expected.items() if name not in header or not valid(header[name])
    ]
    if not finished or "lanes" in found:
        return found
    lanes = len(header["lanes"])
    regret = saved.arrays.get("regret", np.array(np.nan))
    wrong = {
        name
        for name, array in saved.arrays.items()
        if array.shape[:1] != (lanes,) or array.dtype.kind not in "fiub"
    }
    if regret.dtype != np.float64 or not np.isfinite(regret).all():
        wrong.add("regret")
    return found + sorted(wrong)


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
    short = [
        text if len(text) <= 60 else text[:57] + "..."
        for text in (json.dumps(there), json.dumps(here))
    ]
    return [f"{path}: {short[0]} in the checkpoint, {short[1]} now"]


class Store:
    """The checkpoint directory of one configuration.

    Example:
        >>> import tempfile, numpy as np
        >>> from jaxbandit.sweeps.checkpoint import CheckpointFile, Store
        >>> header = {"lanes": [["U", "I", 0, 0]], "compile_seconds": 0, "run_seconds": 0, "episodes": 100}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, {"seed": 0})
        ...     store.save_carry("a", CheckpointFile(header, {"x": np.zeros(2)}))
        ...     store.close()
        ...     Store(folder, {"seed": 0}).load_carry("a").header["episodes"]
        100
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: Mapping[str, Any],
        backend: Mapping[str, str] | None = None,
        identity: Identity | None = None,
        resume: bool = True,
        allow_backend_change: bool = False,
        alone: bool = True,
    ):
        """Opens or makes the directory; ``resume=False`` throws away what it holds.

        Raises CheckpointError if it belongs to another configuration, to other bits (unless they are allowed), is
        in use, or cannot be written. ``alone=False`` is for the other processes of one sweep.
        """
        self.directory = Path(directory)
        self.fingerprint = fingerprint(config)
        self.backend = dict(backend or {})
        self.identity = identity
        self.other_backends: list[dict[str, str]] = []
        """What else the bits of lanes in the directory depend on."""
        self._generation: dict[str, int] = {}
        self._lock: FolderLock | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.directory) if alone else None
            if not resume:
                for kind in ("*.jbk", "text-*.gz", CONFIG):
                    for old in self.directory.glob(kind):
                        old.unlink(missing_ok=True)
            self._check(config, allow_backend_change)
            self.set_aside(allow_backend_change)
            known: dict[str, Any] = {
                "config": config,
                "bits": self.backend,
                "other_bits": self.other_backends,
            }
            known["checksum"] = fingerprint(known)
            write_atomically(self.directory / CONFIG, json.dumps(known, indent=1).encode())
        except OSError as error:
            self.close()
            if error.errno == errno.EBUSY:
                raise CheckpointError(f"checkpoint: {self.directory}: {error.strerror}") from error
            raise CheckpointError(
                f"checkpoint: cannot write to {self.directory} ({error}); "
                "accepted: a directory with write access and free space"
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets others use the directory. An error that is looked at later keeps this object, but not the lock."""
        if self._lock is not None:
            self._lock.close()

    def _check(self, config: Mapping[str, Any], allow_backend_change: bool) -> None:
        path = self.directory / CONFIG
        try:
            content = read_file(path, limit=LARGEST_CONFIG)
        except FileNotFoundError:
            return
        except OSError as error:
            raise unreadable(path, error) from error
        try:
            there = json.loads(content)
            if there.pop("checksum", None) != fingerprint(there):
                raise ValueError("its checksum does not match")
            before, bits = there["config"], dict(there["bits"])
            others = [dict(each) for each in there["other_bits"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Every file carries the fingerprint, the bits and its program too, so nothing else can slip in.
            warnings.warn(f"checkpoint: {path} is corrupted and is written anew", stacklevel=4)
            return
        if fingerprint(before) != self.fingerprint:
            shown = _listed(differences(json.loads(_canonical(config)), before))
            raise CheckpointError(
                f"checkpoint: {self.directory} belongs to another configuration ({shown}); "
                "give another directory, the same configuration, or resume=False to throw its content away"
            )
        # those that are ours now were another's when they were noted
        self.other_backends = [each for each in others if each != self.backend]
        self._meet(bits, allow_backend_change)

    def _meet(self, bits: dict[str, str], allow_backend_change: bool) -> None:
        """Notes bits that something in the directory depends on; an error if they are neither ours, nor known, nor
        allowed."""
        if bits == self.backend or bits in self.other_backends:
            return
        if not allow_backend_change:
            shown = _listed(differences(self.backend, bits))
            raise CheckpointError(
                f"checkpoint: the last digits of what {self.directory} holds depend on something else ({shown}); "
                "give another directory, resume=False to throw its content away, or allow_backend_change=True to go "
                "on all the same (the result will say so)"
            )
        self.other_backends.append(bits)

    def set_aside(self, allow_backend_change: bool = True) -> None:
        """Renames files of learners that are other programs now, and says once a learner what has changed.

        Files of another jax or device, where they are allowed, are taken on trust: their texts cannot be compared.
        """
        changed: dict[str, dict[str, str]] = {}
        texts: set[str] = set()
        for path in [*self.directory.glob("done-*.jbk"), *self.directory.glob("carry-*.jbk")]:
            saved = self._read(path)
            if saved is None:
                continue
            for bits in saved.header["bits"]:
                self._meet(bits, allow_backend_change)
            before, lanes = saved.header["program"], lanes_of(saved.header)
            said = {}
            if self.identity is not None and saved.header["bits"][:1] == [self.backend]:
                said = self.identity.changes(lanes, before, self._read_text)
            if not said:
                texts |= {self._text_path(digest).name for digest in before.values()}
                continue
            for learner in dict.fromkeys(lane[0] for lane in lanes):
                changed.setdefault(learner, {}).update(said)
            os.replace(path, unused_name(path.with_name(f"stale-{path.name}")))
        for path in self.directory.glob("text-*.gz"):
            if path.name not in texts:
                path.unlink(missing_ok=True)
        for learner, lines in changed.items():
            warnings.warn(
                f"checkpoint: learner {learner!r} is not what it was when {self.directory} was written "
                f"(changed: {_listed(list(lines.values()))}); its runs are made anew, the old ones are set aside as stale-*",
                stacklevel=5,
            )

    def _text_path(self, digest: str) -> Path:
        return self.directory / f"text-{digest[:24]}.gz"

    def _read_text(self, digest: str) -> str | None:
        """A text that was kept, if it can be read."""
        try:
            packed = zlib.decompressobj()
            content = read_file(self._text_path(digest), limit=LARGEST_TEXT)
            return packed.decompress(content, 2**24).decode()
        except (OSError, ValueError, zlib.error):
            return None

    def _write_texts(self, lanes: list[Lane]) -> None:
        """Keeps the texts of what runs these lanes, where they are small."""
        for digest, text in ({} if self.identity is None else self.identity.texts(lanes)).items():
            path = self._text_path(digest)
            if not path.exists() and len(packed := zlib.compress(text.encode())) <= LARGEST_TEXT:
                write_atomically(path, packed)

    def save_done(self, name: str, saved: CheckpointFile) -> None:
        """Keeps the results of finished lanes, then drops their carry."""
        self._write(self.directory / f"done-{name}.jbk", saved)
        self.discard_carry(name)

    def save_carry(self, name: str, saved: CheckpointFile) -> None:
        """Keeps the state of a tile, in place of the older of its two generations."""
        if name not in self._generation:
            self.load_carry(name)
        generation = self._generation.get(name, 0) + 1
        slot = self._generations(name)[generation % 2]
        self._write(slot, CheckpointFile({**saved.header, "generation": generation}, saved.arrays))
        self._generation[name] = generation

    def load_carry(self, name: str) -> CheckpointFile | None:
        """The newest whole generation of a tile's state, or None."""
        found = [self._read(path) for path in self._generations(name)]
        whole = [saved for saved in found if saved is not None]
        if not whole:
            return None
        newest = max(whole, key=lambda saved: saved.header["generation"])
        self._generation[name] = newest.header["generation"]
        return newest

    def carries(self) -> list[str]:
        """Names of the tiles that are under way."""
        return sorted(
            {
                path.name[len("carry-") :].rsplit(".", 2)[0]
                for path in self.directory.glob("carry-*.jbk")
            }
        )

    def load_done(self) -> list[CheckpointFile]:
        """The results of all finished lanes; files that are not whole are reported and set aside."""
        loaded = (self._read(path) for path in sorted(self.directory.glob("done-*.jbk")))
        return [saved for saved in loaded if saved is not None]

    def discard_carry(self, name: str) -> None:
        """Forgets a tile that is under way."""
        for path in self._generations(name):
            path.unlink(missing_ok=True)

    def _generations(self, name: str) -> list[Path]:
        return [self.directory / f"carry-{name}.{slot}.jbk" for slot in (0, 1)]

    def _write(self, path: Path, saved: CheckpointFile) -> None:
        lanes = lanes_of(saved.header)
        parts = None if self.identity is None else self.identity.parts(lanes)
        own = {
            "fingerprint": self.fingerprint,
            "program": dict(parts or {}),
            "bits": [self.backend, *self.other_backends],
        }
        content = encode(CheckpointFile({**saved.header, **own}, saved.arrays))
        try:
            self._write_texts(lanes)
            write_atomically(path, content)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint: cannot write {path} ({error}); what was saved before is intact: "
                f"make room and run again with checkpoint={str(self.directory)!r} to continue from it"
            ) from error

    def _read(self, path: Path) -> CheckpointFile | None:
        """A file's content; None if it is not there or, with a warning, not whole: then it is set aside.

        What cannot be read may be whole, so it stops the sweep.
        """
        try:
            content = read_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(path, error) from error
        try:
            saved = decode(content)
            if wrong := wrong_entries(saved, finished=path.name.startswith("done-")):
                raise ValueError(f"not written by a sweep (its {', '.join(wrong)})")
        except ValueError as error:
            aside = unused_name(path.with_name(f"{path.name}.damaged"))
            try:
                os.replace(path, aside)
            except OSError as refused:
                raise unreadable(path, refused) from error
            warnings.warn(
                f"checkpoint: {path} is not used: {error}; it is kept as {aside.name}, and "
                "its part of the sweep goes back to the checkpoint before it",
                stacklevel=3,
            )
            return None
        if saved.header.get("fingerprint") != self.fingerprint:
            raise CheckpointError(
                f"checkpoint: {path} belongs to another configuration; remove it or give another directory"
            )
        return saved


def unreadable(path: Path, error: OSError) -> CheckpointError:
    """The refusal of a file that may be whole but cannot be read now."""
    return CheckpointError(
        f"checkpoint: cannot read {path} ({error.strerror or error}); it was left as it is; "
        "accepted: readable regular files, or another directory"
    )


def unused_name(path: Path) -> Path:
    """The path, with a number behind it if there is such a file already."""
    names = (path if number == 1 else path.with_name(f"{path.name}{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _listed(lines: list[str]) -> str:
    more = f"; and {len(lines) - 6} more" if len(lines) > 6 else ""
    return "; ".join(lines[:6]) + more


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"))
