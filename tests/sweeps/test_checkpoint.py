"""Checkpoint files: whole or not used, two generations, one configuration per directory, clear
errors."""

import collections
import errno
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

from jaxbandit.sweeps import checkpoint
from jaxbandit.sweeps.checkpoint import CheckpointError, Saved, Store, decode, differences, encode
from jaxbandit.sweeps.saved import MAGIC

CONFIG = {"seed": 0, "learners": {"UCB-VI": {"params": {"bonus_scale": [1.0]}}}}


def saved(value, size=3):
    return Saved(
        {"episodes": value},
        {"x": np.full(size, float(value)), "['state'].q": np.arange(4, dtype=np.int8)},
    )


def test_hostile_files_are_not_used(tmp_path):
    Store(tmp_path, CONFIG).close()
    payload = b"nothing"
    (tmp_path / "done-b.jbk").write_bytes(MAGIC + hashlib.sha256(payload).digest() + payload)
    with pytest.warns(UserWarning, match="is not used: not written by a sweep"):
        assert Store(tmp_path, CONFIG).load_done() == []


def test_a_file_without_a_fingerprint_belongs_to_nobody(tmp_path):
    Store(tmp_path, CONFIG).close()
    (tmp_path / "done-b.jbk").write_bytes(encode(saved(1)))
    with pytest.raises(CheckpointError, match="belongs to another configuration; remove it"):
        Store(tmp_path, CONFIG)


def test_newest_generation_is_loaded_and_two_are_kept(tmp_path):
    store = Store(tmp_path, CONFIG)
    for value in (1, 2, 3):
        store.save_carry("b", saved(value))
    store.close()
    assert Store(tmp_path, CONFIG).load_carry("b").header["episodes"] == 3
    assert len(list(tmp_path.glob("carry-*"))) == 2
    # a second process goes on counting generations where the first stopped
    Store(tmp_path, CONFIG).save_carry("b", saved(4))
    assert Store(tmp_path, CONFIG).load_carry("b").header["episodes"] == 4


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_a_damaged_newest_generation_falls_back(tmp_path, damage):
    store = Store(tmp_path, CONFIG)
    store.save_carry("b", saved(1))
    store.save_carry("b", saved(2))
    store.close()
    newest = next(
        p for p in tmp_path.glob("carry-*") if decode(p.read_bytes()).header["episodes"] == 2
    )
    content = newest.read_bytes()
    broken = {
        "truncate": content[:-7],
        "flip": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        "empty": b"",
    }[damage]
    newest.write_bytes(broken)
    with pytest.warns(
        UserWarning,
        match="is not used: truncated or corrupted .* goes back to the checkpoint before",
    ):
        found = Store(tmp_path, CONFIG).load_carry("b")
    assert found.header["episodes"] == 1
    newest.write_bytes(broken)
    for path in tmp_path.glob("carry-*"):
        path.write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="is not used"):
        assert Store(tmp_path, CONFIG).load_carry("b") is None


def test_finished_lanes_are_kept_and_their_state_dropped(tmp_path):
    store = Store(tmp_path, CONFIG)
    store.save_carry("b", saved(1))
    store.save_done("b", saved(2))
    assert store.carries() == []
    store.close()
    assert [found.header["episodes"] for found in Store(tmp_path, CONFIG).load_done()] == [2]
    next(tmp_path.glob("done-*")).write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="is not used"):
        assert Store(tmp_path, CONFIG).load_done() == []


def test_another_configuration_is_refused_and_named(tmp_path):
    Store(tmp_path, CONFIG).save_done("b", saved(1))
    other = {"seed": 1, "learners": {"UCB-VI": {"params": {"bonus_scale": [0.5]}}}, "x64": True}
    with pytest.raises(CheckpointError) as error:
        Store(tmp_path, other)
    message = str(error.value)
    assert "belongs to another configuration" in message
    assert "seed: 0 in the checkpoint, 1 now" in message
    assert "learners.UCB-VI.params.bonus_scale: [1.0] in the checkpoint, [0.5] now" in message
    assert 'x64: "absent" in the checkpoint, true now' in message
    assert "resume=False to throw its content away" in message
    assert len(Store(tmp_path, CONFIG).load_done()) == 1
    Store(tmp_path, other, resume=False)
    assert Store(tmp_path, other).load_done() == []


def test_a_file_of_another_configuration_never_slips_in(tmp_path):
    Store(tmp_path, CONFIG).save_done("b", saved(1))
    (tmp_path / "config.json").write_text("{ damaged")
    with (
        pytest.warns(UserWarning, match=r"config\.json is corrupted and is written anew"),
        pytest.raises(
            CheckpointError,
            match="belongs to another configuration; remove it or give another directory",
        ),
    ):
        Store(tmp_path, {"seed": 5})


def test_long_differences_are_cut():
    (line,) = differences({"a": list(range(100))}, {"a": [1]})
    assert len(line) < 150


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / f"carry-b.0.jbk.123{checkpoint.MARK}").write_bytes(b"half")
    Store(tmp_path, CONFIG)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "lock"]


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        CheckpointError,
        match=r"cannot write to .*accepted: a directory with write access and free space",
    ):
        Store(tmp_path / "file" / "run", CONFIG)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path, CONFIG)
    store.save_carry("b", saved(1))
    store.save_carry("b", saved(2))

    def full(self, content):
        with open(self, "wb") as file:
            file.write(content[:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(
        CheckpointError,
        match=r"No space left on device.*saved before is intact.*run again with checkpoint=",
    ):
        store.save_carry("b", saved(3))
    monkeypatch.undo()
    store.close()
    assert not list(tmp_path.glob(f"*{checkpoint.MARK}"))
    assert Store(tmp_path, CONFIG).load_carry("b").header["episodes"] == 2


def test_a_write_that_the_system_refuses(tmp_path):
    """A real failing write: files of this process may not pass 20 kB."""
    program = f"""
import numpy as np, resource, signal
from jaxbandit.sweeps.checkpoint import Saved, Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store({str(tmp_path)!r}, {json.dumps(CONFIG)})
store.save_carry("b", Saved({{"episodes": 1}}, {{"x": np.zeros(100)}}))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, {resource.RLIM_INFINITY}))
store.save_carry("b", Saved({{"episodes": 2}}, {{"x": np.zeros(10_000)}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "CheckpointError: checkpoint: cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert not list(tmp_path.glob(f"*{checkpoint.MARK}"))
    assert Store(tmp_path, CONFIG).load_carry("b").header["episodes"] == 1


def test_a_directory_has_one_user_at_a_time(tmp_path):
    store = Store(tmp_path, CONFIG)
    saying = "another sweep is using this directory now; wait for it, or give another one"
    with pytest.raises(CheckpointError, match=saying):
        Store(tmp_path, CONFIG)
    Store(tmp_path, CONFIG, alone=False)  # another process of the same sweep
    store.close()
    store.close()
    Store(tmp_path, CONFIG)


def test_a_refused_directory_is_free_again_while_the_error_is_kept(tmp_path):
    """Notebooks keep the last error and with it all that was open."""
    Store(tmp_path, CONFIG)
    with pytest.raises(CheckpointError) as kept:
        Store(tmp_path, {"seed": 1})
    Store(tmp_path, {"seed": 1}, resume=False)
    assert "another configuration" in str(kept.value)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_directory_without_write_access():
    """Root may write anywhere, so the attempt is made as nobody, in a folder of its own that it may enter."""
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "run"
        Store(folder, CONFIG).save_done("b", saved(1))
        program = f"""
import os
from jaxbandit.sweeps.checkpoint import Store
if os.geteuid() == 0:
    os.seteuid(65534)
Store({str(folder)!r}, {json.dumps(CONFIG)})
"""
        os.chmod(parent, 0o755)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        folder.chmod(0o755)
        assert "CheckpointError: checkpoint: cannot write to" in done.stderr
        assert "accepted: a directory with write access and free space" in done.stderr
        assert len(Store(folder, CONFIG).load_done()) == 1


BITS = {"device": "cpu: cpu", "jax": "0.10.2"}


def test_other_bits_are_refused_or_recorded(tmp_path):
    Store(tmp_path, CONFIG, bits=BITS).save_done("b", saved(1))
    other = BITS | {"jax": "0.12.0"}
    with pytest.raises(CheckpointError) as error:
        Store(tmp_path, CONFIG, bits=other)
    message = str(error.value)
    assert 'jax: "0.10.2" in the checkpoint, "0.12.0" now' in message
    assert "device" not in message.partition("depend on")[2]
    assert "allow_other_bits=True to go on all the same (the result will say so)" in message
    allowed = Store(tmp_path, CONFIG, bits=other, allow_other_bits=True)
    assert allowed.other_bits == [BITS]
    assert len(allowed.load_done()) == 1
    allowed.close()
    # it stays known, whoever goes on
    assert Store(tmp_path, CONFIG, bits=other).other_bits == [BITS]
    assert Store(tmp_path, CONFIG, bits=BITS, allow_other_bits=True).other_bits == [other]


class Programs:
    """Stands for the identity of a sweep: one digest a learner, with the digest as its text."""

    def __init__(self, **now):
        self.now = now

    def parts(self, lanes):
        return {"act": self.now[lanes[0][0]]}

    def texts(self, lanes):
        return {digest: f"text of {digest}" for digest in self.parts(lanes).values()}

    def changes(self, lanes, before, text_of):
        same = before == self.parts(lanes)
        return {} if same else {"act": f"act: {text_of(before['act'])}"}


def test_files_of_another_program_are_set_aside(tmp_path):
    kept = Saved({"lanes": [["V", "I", 0, 0]]}, {"x": np.zeros(1)})
    stale = Saved({"lanes": [["U", "I", 0, 0]]}, {"x": np.zeros(1)})
    store = Store(tmp_path, CONFIG, identity=Programs(U="old", V="same"))
    store.save_done("u", stale)
    store.save_carry("w", stale)
    store.save_done("v", kept)
    store.close()
    with pytest.warns(UserWarning, match="its runs are made anew") as told:
        store = Store(tmp_path, CONFIG, identity=Programs(U="new", V="same"))
    (message,) = [str(each.message) for each in told]
    assert "learner 'U' is not what it was" in message
    assert "(changed: act: text of old); its runs are made anew" in message
    assert [found.header["lanes"] for found in store.load_done()] == [kept.header["lanes"]]
    assert store.carries() == []
    assert len(list(tmp_path.glob("stale-*"))) == 2
    assert [path.name for path in tmp_path.glob("text-*")] == ["text-same.gz"]
    store.close()
    Store(tmp_path, CONFIG, identity=Programs(U="new", V="same"))  # said once


def test_texts_of_another_jax_are_not_compared(tmp_path):
    """They are taken on trust where other bits are allowed: each release writes its own texts."""
    saved = Saved({"lanes": [["U", "I", 0, 0]]}, {"x": np.zeros(1)})
    store = Store(tmp_path, CONFIG, bits={"jax": "1"}, identity=Programs(U="old"))
    store.save_done("u", saved)
    store.close()
    how = {"identity": Programs(U="new"), "allow_other_bits": True}
    store = Store(tmp_path, CONFIG, bits={"jax": "2"}, **how)
    assert len(store.load_done()) == 1


BITS = {"jax": "0.10.2", "device": "cpu"}


def config_bytes(folder):
    """A directory with one finished tile, and its config.json."""
    store = Store(folder, CONFIG, bits=BITS)
    store.save_done("a", saved(1))
    store.close()
    return (folder / "config.json").read_bytes()


def opened(folder, content, **options):
    """What a damaged config.json leads to: "refused", "warned" or "whole"; the numbers are there in any case."""
    (folder / "config.json").write_bytes(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            store = Store(folder, CONFIG, **({"bits": BITS} | options))
        except CheckpointError:
            return "refused"
    (done,) = store.load_done()
    np.testing.assert_array_equal(done.arrays["x"], [1.0, 1.0, 1.0])
    assert store.other_bits == []
    store.close()
    return "warned" if said else "whole"


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_damage_of_the_configuration_is_seen(tmp_path, step):
    content = config_bytes(tmp_path)
    counts = collections.Counter()
    for bit in range(0, 8 * len(content), step):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        counts[opened(tmp_path, bytes(changed))] += 1
    # "whole": a space for another kind of space
    assert counts["warned"] > 0.8 * counts.total()
    assert counts["refused"] == 0
    lengths = [opened(tmp_path, content[:length]) for length in range(0, len(content), step)]
    assert set(lengths) == {"warned"}


def test_without_the_configuration_bits_are_still_those_of_the_files(tmp_path):
    """Lost, or damaged together with a change of jax: the files themselves say what their digits depend on."""
    config_bytes(tmp_path)
    newer = BITS | {"jax": "0.12"}
    for content in (b"{}", b"nothing"):
        assert opened(tmp_path, content, bits=newer) == "refused"
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r'jax: "0\.10\.2" in the checkpoint, "0\.12" now'):
        Store(tmp_path, CONFIG, bits=newer)
    store = Store(tmp_path, CONFIG, bits=newer, allow_other_bits=True)
    assert store.other_bits == [BITS]
    store.save_done("b", saved(2))
    store.close()
    (tmp_path / "config.json").unlink()
    assert Store(tmp_path, CONFIG, bits=newer, allow_other_bits=True).other_bits == [BITS]
