"""Checkpoints, from which a killed sweep continues: flat arrays, atomic writes, checksums, two generations.

A checkpoint directory belongs to one configuration (`Store` refuses any other) and holds

    config.json              the configuration, readable
    done-<tile>.jbk          results of finished lanes: more seeds later run only the new ones
    carry-<tile>.<0|1>.jbk   state of a tile that is under way, the last two generations
    stale-*                  files of learners that are other programs now
    texts.gz                 what the learners' functions lowered to, to say what has changed
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

import contextlib
import errno
import hashlib
import io
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.errors import CheckpointError
from jaxbandit.files import FolderLock, lock_folder, read_file, write_atomically
from jaxbandit.sweeps.lanes import lanes_of, shorten

if TYPE_CHECKING:
    from jaxbandit.sweeps.identity import Identity

MAGIC = b"jaxbandit-1\n"
CONFIG, TEXTS = "config.json", "texts.gz"
LARGEST_CONFIG = 2**26
"""Bytes of config.json, and of all texts together, that are read."""
LARGEST_TEXT = 2**20
"""Letters of a text that is kept."""
HEADER: dict[str, type | tuple[type, ...]] = {
    "lanes": list,
    "compile_seconds": (int, float),
    "run_seconds": (int, float),
    "bits": list,
    "program": dict,
}
"""Entries of every header, with their types."""
DONE: dict[str, type | tuple[type, ...]] = {**HEADER, "name": str}
CARRY: dict[str, type | tuple[type, ...]] = {**HEADER, "episodes": int, "generation": int}


class CheckpointFile(NamedTuple):
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
    """The inverse of `encode`; ValueError if the content is not whole.

    Nothing is unpickled, and nothing larger than the file is made.
    """
    start = len(MAGIC) + 32
    payload = content[start:]
    right = MAGIC + hashlib.sha256(payload).digest()
    if content[:start] != right:
        raise ValueError("truncated or corrupted (its checksum does not match)")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as parts:
            if sum(part.file_size for part in parts.infolist()) > len(payload):
                raise ValueError("compressed")
        with np.load(io.BytesIO(payload), allow_pickle=False) as file:
            found = dict(file)
        header = {**json.loads(found.pop("header").tobytes())}
    except Exception as error:  # an untrusted file: zip, numpy and json raise errors of many kinds
        raise ValueError(f"not written by a sweep ({error})") from error
    return CheckpointFile(header, {name[len("array:") :]: each for name, each in found.items()})


def wrong_entries(saved: CheckpointFile, finished: bool) -> list[str]:
    """Entries that a file of finished lanes, or of a tile under way, lacks or has with a wrong type or shape.

    Example:
        >>> header = {"lanes": [["U", "I", 0, 0]], "name": "a", "bits": [], "program": {}}
        >>> wrong_entries(CheckpointFile(header, {"regret": np.array([[np.nan]])}), finished=True)
        ['compile_seconds', 'run_seconds', 'regret']
    """
    header: dict[str, Any] = {
        name: None if isinstance(value, bool) else value for name, value in saved.header.items()
    }
    wanted = DONE if finished else CARRY
    found = [name for name, kind in wanted.items() if not isinstance(header.get(name), kind)]
    if "lanes" not in found and any(
        not isinstance(lane, list) or len(lane) != 4 for lane in header["lanes"]
    ):
        found.append("lanes")
    if not finished or "lanes" in found:
        return found
    lanes = len(header["lanes"])
    arrays = {"regret": np.array(np.nan), **saved.arrays}
    return found + sorted(
        name
        for name, array in arrays.items()
        if array.shape[:1] != (lanes,)
        or array.dtype.kind not in "fiub"
        or (name == "regret" and not np.isfinite(array).all())
    )


def fingerprint(config: Mapping[str, Any]) -> str:
    """SHA-256 of the configuration as canonical JSON."""
    canonical = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


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
    before, now = (shorten(json.dumps(value)) for value in (there, here))
    return [f"{path}: {before} in the checkpoint, {now} now"]


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
                for kind in ("*.jbk", "text*.gz", CONFIG):
                    for old in self.directory.glob(kind):
                        old.unlink(missing_ok=True)
            self._check(config)
            self.set_aside(allow_backend_change)
            known = {"config": config, "bits": self.backend, "other_bits": self.other_backends}
            known["checksum"] = fingerprint(known)
            write_atomically(self.directory / CONFIG, json.dumps(known, indent=1).encode())
        except OSError as error:
            self.close()
            told = f"cannot write to {self.directory} ({error}); accepted: a directory with write access and free space"
            if error.errno == errno.EBUSY:
                told = f"{self.directory}: {error.strerror}"
            raise CheckpointError(f"checkpoint: {told}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets others use the directory. An error that is looked at later keeps this object, but not the lock."""
        if self._lock is not None:
            self._lock.close()

    def _check(self, config: Mapping[str, Any]) -> None:
        """An error if the directory belongs to another configuration; notes what was allowed before."""
        path = self.directory / CONFIG
        content = _content(path, LARGEST_CONFIG)
        if content is None:
            return
        try:
            there = json.loads(content)
            if there.pop("checksum", None) != fingerprint(there):
                raise ValueError("its checksum does not match")
            before, others = there["config"], [dict(each) for each in there["other_bits"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Every file carries the fingerprint, the bits and its program too, so nothing else can slip in.
            warnings.warn(f"checkpoint: {path} is corrupted and is written anew", stacklevel=4)
            return
        if fingerprint(before) != self.fingerprint:
            shown = _listed(differences(json.loads(json.dumps(config)), before))
            raise CheckpointError(
                f"checkpoint: {self.directory} belongs to another configuration ({shown}); "
                "give another directory, the same configuration, or resume=False to throw its content away"
            )
        # those that are ours now were another's when they were noted
        self.other_backends = [each for each in others if each != self.backend]

    def set_aside(self, allow_backend_change: bool = True) -> None:
        """Renames files of learners that are other programs now, says once a learner what has changed, and keeps the
        texts of what they are now.

        Files of another jax or device, where they are allowed, are taken on trust: their texts cannot be compared.
        """
        changed: dict[str, dict[str, str]] = {}
        texts = self._texts()
        for path in [*self.directory.glob("done-*.jbk"), *self.directory.glob("carry-*.jbk")]:
            saved = self._read(path)
            if saved is None:
                continue
            for bits in saved.header["bits"]:
                if bits in (self.backend, *self.other_backends):
                    continue
                if not allow_backend_change:
                    shown = _listed(differences(self.backend, bits))
                    raise CheckpointError(
                        f"checkpoint: the last digits of what {self.directory} holds depend on something else ({shown}); "
                        "give another directory, resume=False to throw its content away, or allow_backend_change=True to go "
                        "on all the same (the result will say so)"
                    )
                self.other_backends.append(bits)
            if self.identity is None or saved.header["bits"][:1] != [self.backend]:
                continue
            lanes = lanes_of(saved.header)
            said = self.identity.changes(lanes, saved.header["program"], texts)
            if said:
                for learner in dict.fromkeys(lane[0] for lane in lanes):
                    changed.setdefault(learner, {}).update(said)
                os.replace(path, unused_name(path.with_name(f"stale-{path.name}")))
        for learner, lines in changed.items():
            warnings.warn(
                f"checkpoint: learner {learner!r} is not what it was when {self.directory} was written "
                f"(changed: {_listed(list(lines.values()))}); its runs are made anew, the old ones are set aside as stale-*",
                stacklevel=5,
            )
        if self.identity is not None:
            of_all = self.identity.texts().items()
            now = {digest: text for digest, text in of_all if len(text) <= LARGEST_TEXT}
            if now != texts:
                write_atomically(self.directory / TEXTS, zlib.compress(json.dumps(now).encode()))

    def _texts(self) -> dict[str, str]:
        """The texts that were kept, by digest, if they can be read."""
        try:
            packed = read_file(self.directory / TEXTS, limit=LARGEST_CONFIG)
            found = json.loads(zlib.decompressobj().decompress(packed, LARGEST_CONFIG))
            return {name: str(text) for name, text in found.items()}
        except (OSError, ValueError, AttributeError, RecursionError, zlib.error):
            return {}

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

    def load_carries(self) -> dict[str, CheckpointFile]:
        """The states of all tiles that are under way, by name."""
        paths = self.directory.glob("carry-*.jbk")
        names = {path.name.removeprefix("carry-").rsplit(".", 2)[0] for path in paths}
        found = {name: self.load_carry(name) for name in sorted(names)}
        return {name: saved for name, saved in found.items() if saved is not None}

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
        parts = None if self.identity is None else self.identity.parts(lanes_of(saved.header))
        own = {
            "fingerprint": self.fingerprint,
            "program": dict(parts or {}),
            "bits": [self.backend, *self.other_backends],
        }
        content = encode(CheckpointFile({**saved.header, **own}, saved.arrays))
        try:
            write_atomically(path, content)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint: cannot write {path} ({error}); what was saved before is intact: "
                f"make room and run again with checkpoint={str(self.directory)!r} to continue from it"
            ) from error

    def _read(self, path: Path) -> CheckpointFile | None:
        """A file's content; None if it is not there or, with a warning, not whole: then it is set aside."""
        content = _content(path)
        if content is None:
            return None
        try:
            saved = decode(content)
            if wrong := wrong_entries(saved, finished=path.name.startswith("done-")):
                raise ValueError(f"not written by a sweep (its {', '.join(wrong)})")
        except ValueError as error:
            aside = unused_name(path.with_name(f"{path.name}.damaged"))
            with _left_alone(path):
                os.replace(path, aside)
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


def _content(path: Path, limit: int | None = None) -> bytes | None:
    """The bytes of a file, None if there is none."""
    with _left_alone(path):
        try:
            return read_file(path, limit=limit)
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def _left_alone(path: Path) -> Iterator[None]:
    """A file that cannot be read, or renamed, may be whole, so it stops the sweep."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"checkpoint: cannot read {path} ({error.strerror or error}); it was left as it is; "
            "accepted: readable regular files, or another directory"
        ) from error


def unused_name(path: Path) -> Path:
    """The path, with a number behind it if there is such a file already."""
    names = (path if number == 1 else path.with_name(f"{path.name}{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _listed(lines: list[str]) -> str:
    more = f"; and {len(lines) - 6} more" if len(lines) > 6 else ""
    return "; ".join(lines[:6]) + more
