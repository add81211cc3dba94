"""Checkpoints, from which a killed sweep continues: flat arrays, atomic writes, checksums, two
generations.

A checkpoint directory belongs to one configuration (`Store` refuses any other) and holds

    config.json              the configuration, readable
    done-<tile>.jbk          results of finished lanes: more seeds later run only the new ones
    carry-<tile>.<0|1>.jbk   state of a tile that is under way, the last two generations
    stale-*                  files of learners that are other programs now
    text-<digest>.gz         what a function lowered to, to say what has changed
    lock                     held by the sweep that uses the directory

Files are those of `saved`. Each is written under a temporary name in the same directory, flushed to disk,
renamed, and the directory flushed: a kill or a power cut leaves the old file or the new one, never
half of one. A file whose checksum is wrong is reported and not used; all that config.json says of files is in them, too,
so that its loss loses nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandit.errors import CheckpointError
from jaxbandit.files import MARK, FolderLock, lock_folder, write_atomically
from jaxbandit.sweeps.saved import Saved, decode, encode

if TYPE_CHECKING:
    from jaxbandit.sweeps.identity import Identity

CONFIG = "config.json"
LARGEST_TEXT = 2**16
"""Bytes of a compressed text that is kept."""


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
        >>> from jaxbandit.sweeps.checkpoint import Saved, Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, {"seed": 0})
        ...     store.save_carry("a", Saved({"episodes": 100}, {"x": np.zeros(2)}))
        ...     store.close()
        ...     Store(folder, {"seed": 0}).load_carry("a").header["episodes"]
        100
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: Mapping[str, Any],
        bits: Mapping[str, str] | None = None,
        identity: Identity | None = None,
        resume: bool = True,
        allow_other_bits: bool = False,
        alone: bool = True,
    ):
        """Opens or makes the directory; ``resume=False`` throws away what it holds.

        Raises CheckpointError if it belongs to another configuration, to other bits (unless they are allowed), is
        in use, or cannot be written. ``alone=False`` is for the other processes of one sweep.
        """
        self.directory = Path(directory)
        self.fingerprint = fingerprint(config)
        self.bits = dict(bits or {})
        self.identity = identity
        self.other_bits: list[dict[str, str]] = []
        """What else the bits of lanes in the directory depend on."""
        self._generation: dict[str, int] = {}
        self._lock: FolderLock | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.directory) if alone else None
            for leftover in self.directory.glob(f"*{MARK}"):
                leftover.unlink(missing_ok=True)
            if not resume:
                for old in [
                    *self.directory.glob("*.jbk"),
                    *self.directory.glob("text-*.gz"),
                    self.directory / CONFIG,
                ]:
                    old.unlink(missing_ok=True)
            self._check(config, allow_other_bits)
            self.set_aside(allow_other_bits)
            known: dict[str, Any] = {
                "config": config,
                "bits": self.bits,
                "other_bits": self.other_bits,
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

    def _check(self, config: Mapping[str, Any], allow_other_bits: bool) -> None:
        path = self.directory / CONFIG
        if not path.exists():
            return
        try:
            there = json.loads(path.read_bytes())
            if there.pop("checksum", None) != fingerprint(there):
                raise ValueError("its checksum does not match")
            before, bits = there["config"], dict(there["bits"])
            others = [dict(each) for each in there["other_bits"]]
        except (ValueError, KeyError, TypeError, AttributeError):
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
        self.other_bits = [each for each in others if each != self.bits]
        self._meet(bits, allow_other_bits)

    def _meet(self, bits: dict[str, str], allow_other_bits: bool) -> None:
        """Notes bits that something in the directory depends on; an error if they are neither ours, nor known, nor
        allowed."""
        if bits == self.bits or bits in self.other_bits:
            return
        if not allow_other_bits:
            shown = _listed(differences(self.bits, bits))
            raise CheckpointError(
                f"checkpoint: the last digits of what {self.directory} holds depend on something else ({shown}); "
                "give another directory, resume=False to throw its content away, or allow_other_bits=True to go "
                "on all the same (the result will say so)"
            )
        self.other_bits.append(bits)

    def set_aside(self, allow_other_bits: bool = True) -> None:
        """Renames files of learners that are other programs now, and says once a learner what has changed.

        Files of another jax or device, where they are allowed, are taken on trust: their texts cannot be compared.
        """
        changed: dict[str, dict[str, str]] = {}
        texts: set[str] = set()
        for path in [*self.directory.glob("done-*.jbk"), *self.directory.glob("carry-*.jbk")]:
            saved = self._read(path)
            if saved is None:
                continue
            for bits in saved.header.get("bits", ()):
                self._meet(bits, allow_other_bits)
            before = saved.header.get("program", {})
            lanes = [tuple(lane) for lane in saved.header.get("lanes", ())]
            trusted = saved.header.get("bits", [self.bits])[0] != self.bits
            said = {}
            if self.identity is not None and not trusted:
                said = self.identity.changes(lanes, before, self._read_text)
            if not said:
                texts |= {self._text_path(digest).name for digest in before.values()}
                continue
            for learner in dict.fromkeys(lane[0] for lane in lanes):
                changed.setdefault(learner, {}).update(said)
            os.replace(path, path.with_name(f"stale-{path.name}"))
        for path in self.directory.glob("text-*.gz"):
            if path.name not in texts:
                path.unlink(missing_ok=True)
        for learner, lines in changed.items():
            warnings.warn(
                f"checkpoint: learner {learner!r} is not what it was when {self.directory} was written "
                f"(changed: {_listed(list(lines.values()))}); its runs are made anew, the old ones are set aside as stale-*",
                stacklevel=5,
            )

    def _read_text(self, digest: str) -> str | None:
        try:
            return zlib.decompress(self._text_path(digest).read_bytes()).decode()
        except (OSError, ValueError, zlib.error):
            return None

    def _text_path(self, digest: str) -> Path:
        return self.directory / f"text-{digest[:24]}.gz"

    def _write_texts(self, lanes: list) -> None:
        """Keeps the texts of what runs these lanes, where they are small."""
        for digest, text in ({} if self.identity is None else self.identity.texts(lanes)).items():
            path = self._text_path(digest)
            if not path.exists() and len(packed := zlib.compress(text.encode())) <= LARGEST_TEXT:
                write_atomically(path, packed)

    def save_done(self, name: str, saved: Saved) -> None:
        """Keeps the results of finished lanes, then drops their carry."""
        self._write(self.directory / f"done-{name}.jbk", saved)
        self.discard_carry(name)

    def save_carry(self, name: str, saved: Saved) -> None:
        """Keeps the state of a tile, in place of the older of its two generations."""
        if name not in self._generation:
            self.load_carry(name)
        generation = self._generation.get(name, 0) + 1
        slot = self._generations(name)[generation % 2]
        self._write(slot, Saved({**saved.header, "generation": generation}, saved.arrays))
        self._generation[name] = generation

    def load_carry(self, name: str) -> Saved | None:
        """The newest whole generation of a tile's state, or None."""
        found = [self._read(path) for path in self._generations(name) if path.exists()]
        whole = [saved for saved in found if saved is not None]
        if not whole:
            return None
        newest = max(whole, key=lambda saved: saved.header.get("generation", 0))
        self._generation[name] = newest.header.get("generation", 0)
        return newest

    def carries(self) -> list[str]:
        """Names of the tiles that are under way."""
        return sorted(
            {
                path.name[len("carry-") :].rsplit(".", 2)[0]
                for path in self.directory.glob("carry-*.jbk")
            }
        )

    def load_done(self) -> list[Saved]:
        """The results of all finished lanes; files that are not whole are reported and removed."""
        loaded = (self._read(path) for path in sorted(self.directory.glob("done-*.jbk")))
        return [saved for saved in loaded if saved is not None]

    def discard_carry(self, name: str) -> None:
        """Forgets a tile that is under way."""
        for path in self._generations(name):
            path.unlink(missing_ok=True)

    def _generations(self, name: str) -> list[Path]:
        return [self.directory / f"carry-{name}.{slot}.jbk" for slot in (0, 1)]

    def _write(self, path: Path, saved: Saved) -> None:
        lanes = [tuple(lane) for lane in saved.header.get("lanes", ())]
        parts = self.identity.parts(lanes) if self.identity is not None and lanes else None
        own = {
            "fingerprint": self.fingerprint,
            "program": dict(parts or {}),
            "bits": [self.bits, *self.other_bits],
        }
        content = encode(Saved({**saved.header, **own}, saved.arrays))
        try:
            self._write_texts(lanes)
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
        except (ValueError, OSError) as error:
            warnings.warn(
                f"checkpoint: {path} is not used: {error}; "
                "its part of the sweep goes back to the checkpoint before it",
                stacklevel=3,
            )
            path.unlink(missing_ok=True)
            return None
        if saved.header.get("fingerprint") != self.fingerprint:
            raise CheckpointError(
                f"checkpoint: {path} belongs to another configuration; remove it or give another directory"
            )
        return saved


def _listed(lines: list[str]) -> str:
    more = f"; and {len(lines) - 6} more" if len(lines) > 6 else ""
    return "; ".join(lines[:6]) + more


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"))
