"""Checkpoint files: whole or not used, two generations, one configuration per directory, clear
errors."""

import collections
import errno
import hashlib
import io
import json
import os
import pathlib
import re
import tempfile
import warnings
import zipfile

import numpy as np
import pytest

from jaxbandit.sweeps.checkpoint import (
    CARRY,
    DONE,
    MAGIC,
    TEXTS,
    CheckpointError,
    CheckpointFile,
    Store,
    decode,
    differences,
    encode,
    wrong_entries,
)

CONFIG = {"seed": 0, "learners": {"UCB-VI": {"params": {"bonus_scale": [1.0]}}}}
BITS = {"device": "cpu: cpu", "jax": "0.10.2"}
NEWER = BITS | {"jax": "0.12.0"}


def lane(learner="U"):
    """The header of a file of one lane, finished or not."""
    about = {"lanes": [[learner, "I", 0, 3]], "name": "a", "compile_seconds": 0.5}
    return about | {"run_seconds": 1, "episodes": 3, "generation": 1, "bits": [], "program": {}}


def saved(value, learner="U"):
    arrays = {"x": np.full((1, 3), float(value)), "regret": np.ones((1, 2))}
    return CheckpointFile({**lane(learner), "episodes": value}, arrays)


def episodes(files):
    return [found.header["episodes"] for found in files]


@pytest.fixture
def opened(tmp_path):
    """Opens the directory of a test, which is closed before it is opened again."""
    last = []

    def reopen(config=CONFIG, **how):
        while last:
            last.pop().close()
        last.append(Store(tmp_path, config, **how))
        return last[0]

    return reopen


def test_encode_and_decode_are_inverse():
    arrays = {
        "a": np.array([np.nan, -0.0]),
        "header": np.zeros((0, 3), np.uint32),
        "c": np.array(7),
    }
    header = {"text": "ä", "list": [1, None]}
    back = decode(encode(CheckpointFile(header, arrays)))
    assert back.header == header
    assert back.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        found = back.arrays[name]
        assert (found.tobytes(), found.dtype, found.shape) == (array.tobytes(), array.dtype, array.shape)  # fmt: skip


def test_nothing_is_pickled():
    with pytest.raises(TypeError, match="x: dtype object; accepted: plain numbers"):
        encode(CheckpointFile({}, {"x": np.array([{}, None], object)}))


def test_every_flipped_bit_and_truncation_is_seen():
    content = encode(saved(1))
    for where in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[where // 8] ^= 1 << (where % 8)
        for broken in (bytes(flipped), content[: where // 8]):
            with pytest.raises(ValueError, match="truncated or corrupted"):
                decode(broken)
    with pytest.raises(ValueError, match="truncated or corrupted"):
        decode(content + b"x")


def signed(payload):
    """A file with a right checksum, as a stranger may write it, too."""
    return MAGIC + hashlib.sha256(payload).digest() + payload


def zipped(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def npy(shape, content=b"", descr="<f8"):
    buffer = io.BytesIO()
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue() + content


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], object), allow_pickle=True)
    return buffer.getvalue()


EMPTY = npy((2,), b"{}", "|u1")
HOSTILE = {
    "no zip": b"nothing",
    "a pickle": zipped({"header.npy": EMPTY, "array:x.npy": pickled()}),
    "a huge shape": zipped({"header.npy": EMPTY, "array:x.npy": npy((2**50,))}),
    "a zip bomb": zipped({"header.npy": EMPTY, "array:x.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED),
    "no header": zipped({"array:x.npy": npy((1,), bytes(8))}),
    "a list for a header": zipped({"header.npy": npy((2,), b"[]", "|u1")}),
    "an unknown type": zipped({"header.npy": EMPTY, "array:x.npy": npy((1,), bytes(8), "O")}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name):
    with pytest.raises(ValueError, match="not written by a sweep"):
        decode(signed(HOSTILE[name]))


def test_entries_that_no_sweep_writes_are_named():
    """An untrusted file can have a right checksum."""
    for finished, wanted in ((True, DONE), (False, CARRY)):
        for name in wanted:
            for odd in (None, True, "" if name != "name" else 1, [[1]] if name == "lanes" else 1j):
                changed = CheckpointFile(lane() | {name: odd}, saved(1).arrays)
                assert wrong_entries(changed, finished) == [name]
    right = {"regret": np.ones((1, 4)), "final_gap": np.ones(1)}
    assert wrong_entries(CheckpointFile(lane(), right), finished=True) == []
    assert wrong_entries(CheckpointFile(lane(), {"['state']": np.ones(7)}), finished=False) == []
    assert wrong_entries(CheckpointFile(lane(), {}), finished=True) == ["regret"]
    for name, array in {
        "regret": np.full((1, 4), np.nan), "final_gap": np.ones(2), "more": np.array(["x"]),
    }.items():  # fmt: skip
        assert wrong_entries(CheckpointFile(lane(), right | {name: array}), True) == [name]


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def linked(path):
    path.replace(path.with_name("outside"))
    path.symlink_to(path.with_name("outside"))


def dangling(path):
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", ["done-b.jbk", "carry-c.1.jbk", "config.json", "lock"])
@pytest.mark.parametrize("change", [pipe, linked, dangling, folder, None])
def test_what_cannot_be_read_is_left_alone_and_named(tmp_path, opened, monkeypatch, name, change):
    """Also a read error of the disk: the file may be whole."""
    store = opened()
    store.save_done("b", saved(1))
    store.save_carry("c", saved(1))
    store.close()
    before = {path.name: path.stat().st_ino for path in tmp_path.glob("*.jbk")}
    if change is None:
        real = os.open

        def failing(path, *rest, **more):
            if pathlib.Path(path).name == name:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, "open", failing)
    else:
        change(tmp_path / name)
        before.pop(name, None)
    with pytest.raises(CheckpointError, match=rf"cannot (read|write).*{name}"):
        opened()
    monkeypatch.undo()
    found = {path.name: path.lstat().st_ino for path in tmp_path.glob("*.jbk")}
    assert before.items() <= found.items()
    assert os.path.lexists(tmp_path / name)
    assert not (tmp_path / "nowhere").exists()


def test_newest_generation_is_loaded_and_two_are_kept(tmp_path, opened):
    store = opened()
    for value in (1, 2, 3):
        store.save_carry("b", saved(value))
    assert episodes(opened().load_carries().values()) == [3]
    assert len(list(tmp_path.glob("carry-*"))) == 2
    # a second process goes on counting generations where the first stopped
    opened().save_carry("b", saved(4))
    assert opened().load_carry("b").header["episodes"] == 4


def test_damaged_files_are_kept_under_another_name_and_the_generation_before_is_loaded(
    tmp_path, opened
):
    store = opened()
    for value in (1, 2):
        store.save_carry("b", saved(value))
    newest = tmp_path / "carry-b.0.jbk"
    content = newest.read_bytes()
    flipped = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    saying = (
        r"is not used: .* kept as carry-b\.0\.jbk\.damaged.* goes back to the checkpoint before"
    )
    for number, damaged in enumerate([content[:-7], flipped, b"", signed(b"nothing")], 1):
        newest.write_bytes(damaged)
        with pytest.warns(UserWarning, match=saying):
            assert opened().load_carry("b").header["episodes"] == 1
        kept = newest.with_name(f"{newest.name}.damaged{number if number > 1 else ''}")
        assert kept.read_bytes() == damaged


def test_finished_lanes_are_kept_and_their_state_dropped(opened):
    store = opened()
    store.save_carry("b", saved(1))
    store.save_done("b", saved(2))
    assert store.load_carries() == {}
    assert episodes(opened().load_done()) == [2]


def test_another_configuration_is_refused_and_named(opened):
    opened().save_done("b", saved(1))
    other = {"seed": 1, "learners": {"UCB-VI": {"params": {"bonus_scale": [0.5]}}}, "x64": True}
    with pytest.raises(CheckpointError) as error:
        opened(other)
    message = str(error.value)
    assert "belongs to another configuration" in message
    assert "seed: 0 in the checkpoint, 1 now" in message
    assert "learners.UCB-VI.params.bonus_scale: [1.0] in the checkpoint, [0.5] now" in message
    assert 'x64: "absent" in the checkpoint, true now' in message
    assert "resume=False to throw its content away" in message
    assert len(opened().load_done()) == 1
    opened(other, resume=False)
    assert opened(other).load_done() == []


@pytest.mark.parametrize("content", ["{ damaged", "[" * 100_000])
def test_files_never_slip_into_another_configuration(tmp_path, opened, content):
    """Also without config.json, and those that say nothing of theirs."""
    opened().save_done("b", saved(1))
    (tmp_path / "config.json").write_text(content)
    saying = "belongs to another configuration; remove it or give another directory"
    corrupted = pytest.warns(UserWarning, match=r"config\.json is corrupted and is written anew")
    with corrupted, pytest.raises(CheckpointError, match=saying):
        opened({"seed": 5})
    (tmp_path / "done-b.jbk").write_bytes(encode(saved(1)))
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=saying):
        opened()


def test_long_differences_are_cut():
    (line,) = differences({"a": list(range(100))}, {"a": [1]})
    assert len(line) < 150


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    saying = r"cannot write to .*accepted: a directory with write access and free space"
    with pytest.raises(CheckpointError, match=saying):
        Store(tmp_path / "file" / "run", CONFIG)


def test_a_full_disk_loses_nothing(tmp_path, opened, monkeypatch):
    store = opened()
    for value in (1, 2):
        store.save_carry("b", saved(value))

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    saying = r"No space left on device.*saved before is intact.*run again with checkpoint="
    with pytest.raises(CheckpointError, match=saying):
        store.save_carry("b", saved(3))
    monkeypatch.undo()
    assert not list(tmp_path.glob(".*.unfinished"))
    assert opened().load_carry("b").header["episodes"] == 2


def test_a_directory_has_one_user_at_a_time(tmp_path):
    """Also while an error of it is kept: notebooks keep the last error and with it all that was open."""
    store = Store(tmp_path, CONFIG)
    saying = "another sweep is using this directory now; wait for it, or give another one"
    with pytest.raises(CheckpointError, match=saying):
        Store(tmp_path, CONFIG)
    Store(tmp_path, CONFIG, alone=False)  # another process of the same sweep
    store.close()
    store.close()
    with pytest.raises(CheckpointError) as kept:
        Store(tmp_path, {"seed": 1})
    Store(tmp_path, {"seed": 1}, resume=False)
    assert "another configuration" in str(kept.value)


AS_NOBODY = """
import json, os, sys
from jaxbandit.sweeps.checkpoint import CheckpointError, Store
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Store(sys.argv[1], json.loads(sys.argv[2]))
except CheckpointError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_directory_without_write_access(printed):
    """Root may write anywhere, so the attempt is made as nobody, in a folder of its own that it may enter."""
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "run"
        Store(folder, CONFIG).save_done("b", saved(1))
        os.chmod(parent, 0o755)
        folder.chmod(0o555)
        told = printed(AS_NOBODY, folder, json.dumps(CONFIG))
        folder.chmod(0o755)
        assert re.search("cannot write to .*accepted: a directory with write access and free", told)
        assert len(Store(folder, CONFIG).load_done()) == 1


def test_other_bits_are_refused_or_recorded(tmp_path, opened):
    """Also without config.json: the files themselves say what their digits depend on."""
    opened(backend=BITS).save_done("b", saved(1))
    for keep in (True, False):
        if not keep:
            (tmp_path / "config.json").unlink()
        with pytest.raises(CheckpointError) as error:
            opened(backend=NEWER)
        message = str(error.value)
        assert 'jax: "0.10.2" in the checkpoint, "0.12.0" now' in message
        assert "device" not in message.partition("depend on")[2]
        assert "allow_backend_change=True to go on all the same (the result will say so)" in message
    allowed = opened(backend=NEWER, allow_backend_change=True)
    assert allowed.other_backends == [BITS]
    assert len(allowed.load_done()) == 1
    allowed.save_done("c", saved(2))
    # it stays known, whoever goes on
    assert opened(backend=NEWER).other_backends == [BITS]
    (tmp_path / "config.json").unlink()
    assert opened(backend=NEWER, allow_backend_change=True).other_backends == [BITS]
    assert opened(backend=BITS, allow_backend_change=True).other_backends == [NEWER]


class Programs:
    """Stands for the identity of a sweep: one digest a learner, and its text."""

    def __init__(self, **now):
        self.now = now

    def parts(self, lanes):
        return {"act": self.now[lanes[0][0]]}

    def texts(self):
        return {digest: f"text of {digest}" for digest in self.now.values()}

    def changes(self, lanes, before, texts):
        same = before == self.parts(lanes)
        return {} if same else {"act": f"act: {texts.get(before['act'])}"}


def test_files_of_another_program_are_set_aside(tmp_path, opened):
    kept, stale = saved(1, "V"), saved(1, "U")
    store = opened(identity=Programs(U="old", V="same"))
    store.save_done("u", stale)
    store.save_carry("w", stale)
    store.save_done("v", kept)
    for text, change in (("text of old", "new"), ("None", "newer")):
        if change == "newer":
            store.save_done("u", stale)
            (tmp_path / TEXTS).write_bytes(b"damaged")
        with pytest.warns(UserWarning, match="its runs are made anew") as told:
            store = opened(identity=Programs(U=change, V="same"))
        (message,) = [str(each.message) for each in told]
        assert "learner 'U' is not what it was" in message
        assert f"(changed: act: {text}); its runs are made anew" in message
    assert [found.header["lanes"] for found in store.load_done()] == [kept.header["lanes"]]
    assert store.load_carries() == {}
    assert len(list(tmp_path.glob("stale-*"))) == 3
    opened(identity=Programs(U="newer", V="same"))  # said once


def test_texts_of_another_jax_are_not_compared(opened):
    """They are taken on trust where other bits are allowed: each release writes its own texts."""
    opened(backend=BITS, identity=Programs(U="old")).save_done("u", saved(1, "U"))
    how = {"identity": Programs(U="new"), "allow_backend_change": True}
    assert len(opened(backend=NEWER, **how).load_done()) == 1


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_damage_of_the_configuration_is_seen(tmp_path, opened, step):
    opened(backend=BITS).save_done("a", saved(1))
    content = (tmp_path / "config.json").read_bytes()

    def is_whole(content):
        """Whether nothing was said; the numbers are there in any case."""
        (tmp_path / "config.json").write_bytes(content)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            store = opened(backend=BITS)
        (done,) = store.load_done()
        np.testing.assert_array_equal(done.arrays["x"], [[1.0, 1.0, 1.0]])
        assert store.other_backends == []
        return not said

    counts = collections.Counter()
    for bit in range(0, 8 * len(content), step):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        counts[is_whole(bytes(changed))] += 1
    # a space for another kind of space is no damage
    assert counts[False] > 0.8 * counts.total()
    assert not any(is_whole(content[:length]) for length in range(0, len(content), step))
