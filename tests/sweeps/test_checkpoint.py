"""Checkpoint files: whole or not used, two generations, one configuration per directory, clear
errors."""

import collections
import errno
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import pytest

from jaxbandit.sweeps.checkpoint import (
    CARRY,
    DONE,
    HEADER,
    MAGIC,
    CheckpointError,
    CheckpointFile,
    Store,
    decode,
    differences,
    encode,
    wrong_entries,
)

CONFIG = {"seed": 0, "learners": {"UCB-VI": {"params": {"bonus_scale": [1.0]}}}}


def lane(learner="U"):
    """The header of a file of one lane, finished or not."""
    about = {"lanes": [[learner, "I", 0, 3]], "name": "a", "compile_seconds": 0.5}
    return about | {"run_seconds": 1, "episodes": 3, "generation": 1, "bits": [], "program": {}}


def saved(value, learner="U"):
    arrays = {"x": np.full((1, 3), float(value)), "regret": np.ones((1, 2))}
    return CheckpointFile({**lane(learner), "episodes": value}, arrays)


def test_encode_and_decode_are_inverse():
    arrays = {"a": np.array([np.nan, -0.0]), "file": np.zeros((0, 3), np.uint32), "c": np.int64(7)}
    back = decode(
        encode(
            CheckpointFile(
                {"text": "ä", "list": [1, None]}, {k: np.asarray(v) for k, v in arrays.items()}
            )
        )
    )
    assert back.header == {"text": "ä", "list": [1, None]}
    for name, array in arrays.items():
        assert back.arrays[name].tobytes() == np.asarray(array).tobytes()
        assert back.arrays[name].dtype == np.asarray(array).dtype
        assert back.arrays[name].shape == np.shape(array)


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
    for odd in (None, -1, True, float("inf"), [None], [["U", "I", 0]], [[1]], {"a": 1}, 10**30):
        for name, finished in [*((n, True) for n in HEADER | DONE), *((n, False) for n in CARRY)]:
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


def test_damaged_files_are_kept_under_another_name(tmp_path):
    Store(tmp_path, CONFIG).close()
    for attempt, content in enumerate([b"nothing", signed(b"nothing")]):
        (tmp_path / "done-b.jbk").write_bytes(content)
        with pytest.warns(UserWarning, match=r"is not used: .* kept as done-b\.jbk\.damaged"):
            assert Store(tmp_path, CONFIG).load_done() == []
        kept = tmp_path / ("done-b.jbk.damaged" + ("2" if attempt else ""))
        assert kept.read_bytes() == content


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def linked(path):
    path.replace(path.with_name("outside"))
    path.symlink_to(path.with_name("outside"))


def folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", ["done-b.jbk", "carry-c.1.jbk", "config.json", "lock"])
@pytest.mark.parametrize("change", [pipe, linked, folder, "EIO"])
def test_what_cannot_be_read_is_left_alone_and_named(tmp_path, monkeypatch, name, change):
    """Also a read error of the disk: the file may be whole."""
    store = Store(tmp_path, CONFIG)
    store.save_done("b", saved(1))
    store.save_carry("c", saved(1))
    store.close()
    before = {path.name: path.stat().st_ino for path in tmp_path.glob("*.jbk")}
    if callable(change):
        change(tmp_path / name)
        before.pop(name, None)
    else:
        real = os.open

        def failing(path, *rest, **more):
            if pathlib.Path(path).name == name:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, "open", failing)
    with pytest.raises(CheckpointError, match=rf"cannot (read|write).*{name}"):
        Store(tmp_path, CONFIG)
    monkeypatch.undo()
    found = {path.name: path.stat().st_ino for path in tmp_path.glob("*.jbk")}
    assert before.items() <= found.items()
    assert (tmp_path / name).exists()


def test_a_configuration_of_many_brackets_and_a_dangling_lock(tmp_path):
    Store(tmp_path, CONFIG).close()
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.warns(UserWarning, match="is corrupted and is written anew"):
        Store(tmp_path, CONFIG).close()
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="lock"):
        Store(tmp_path, CONFIG)
    assert not (tmp_path / "nowhere").exists()


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

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        CheckpointError,
        match=r"No space left on device.*saved before is intact.*run again with checkpoint=",
    ):
        store.save_carry("b", saved(3))
    monkeypatch.undo()
    store.close()
    assert not list(tmp_path.glob(".*.unfinished"))
    assert Store(tmp_path, CONFIG).load_carry("b").header["episodes"] == 2


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
    Store(tmp_path, CONFIG, backend=BITS).save_done("b", saved(1))
    other = BITS | {"jax": "0.12.0"}
    with pytest.raises(CheckpointError) as error:
        Store(tmp_path, CONFIG, backend=other)
    message = str(error.value)
    assert 'jax: "0.10.2" in the checkpoint, "0.12.0" now' in message
    assert "device" not in message.partition("depend on")[2]
    assert "allow_backend_change=True to go on all the same (the result will say so)" in message
    allowed = Store(tmp_path, CONFIG, backend=other, allow_backend_change=True)
    assert allowed.other_backends == [BITS]
    assert len(allowed.load_done()) == 1
    allowed.close()
    # it stays known, whoever goes on
    assert Store(tmp_path, CONFIG, backend=other).other_backends == [BITS]
    assert Store(tmp_path, CONFIG, backend=BITS, allow_backend_change=True).other_backends == [
        other
    ]


class Programs:
    """Stands for the identity of a sweep: one digest a learner, and its text."""

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
    kept, stale = saved(1, "V"), saved(1, "U")
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
    store = Store(tmp_path, CONFIG, backend={"jax": "1"}, identity=Programs(U="old"))
    store.save_done("u", saved(1, "U"))
    store.close()
    how = {"identity": Programs(U="new"), "allow_backend_change": True}
    store = Store(tmp_path, CONFIG, backend={"jax": "2"}, **how)
    assert len(store.load_done()) == 1


BITS = {"jax": "0.10.2", "device": "cpu"}


def config_bytes(folder):
    """A directory with one finished tile, and its config.json."""
    store = Store(folder, CONFIG, backend=BITS)
    store.save_done("a", saved(1))
    store.close()
    return (folder / "config.json").read_bytes()


def opened(folder, content, **options):
    """What a damaged config.json leads to: "refused", "warned" or "whole"; the numbers are there in any case."""
    (folder / "config.json").write_bytes(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            store = Store(folder, CONFIG, **({"backend": BITS} | options))
        except CheckpointError:
            return "refused"
    (done,) = store.load_done()
    np.testing.assert_array_equal(done.arrays["x"], [[1.0, 1.0, 1.0]])
    assert store.other_backends == []
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
        assert opened(tmp_path, content, backend=newer) == "refused"
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r'jax: "0\.10\.2" in the checkpoint, "0\.12" now'):
        Store(tmp_path, CONFIG, backend=newer)
    store = Store(tmp_path, CONFIG, backend=newer, allow_backend_change=True)
    assert store.other_backends == [BITS]
    store.save_done("b", saved(2))
    store.close()
    (tmp_path / "config.json").unlink()
    assert Store(tmp_path, CONFIG, backend=newer, allow_backend_change=True).other_backends == [
        BITS
    ]
