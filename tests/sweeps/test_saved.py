"""Checkpoint files as bytes: what is encoded is decoded, and nothing else is."""

import hashlib
import io
import zipfile

import numpy as np
import pytest

from jaxbandit.sweeps.saved import ENTRIES, MAGIC, Saved, decode, encode, missing


def saved(value, size=3):
    return Saved(
        {"episodes": value},
        {"x": np.full(size, float(value)), "['state'].q": np.arange(4, dtype=np.int8)},
    )


def test_encode_and_decode_are_inverse():
    arrays = {"a": np.array([np.nan, -0.0]), "file": np.zeros((0, 3), np.uint32), "c": np.int64(7)}
    back = decode(
        encode(
            Saved({"text": "ä", "list": [1, None]}, {k: np.asarray(v) for k, v in arrays.items()})
        )
    )
    assert back.header == {"text": "ä", "list": [1, None]}
    for name, array in arrays.items():
        assert back.arrays[name].tobytes() == np.asarray(array).tobytes()
        assert back.arrays[name].dtype == np.asarray(array).dtype
        assert back.arrays[name].shape == np.shape(array)


def test_nothing_is_pickled():
    with pytest.raises(TypeError, match="x: dtype object; accepted: plain numbers"):
        encode(Saved({}, {"x": np.array([{}, None], object)}))


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


HEADER = npy((2,), b"{}", "|u1")
HOSTILE = {
    "no zip": b"nothing",
    "a pickle": zipped({"header.npy": HEADER, "array:x.npy": pickled()}),
    "a huge shape": zipped({"header.npy": HEADER, "array:x.npy": npy((2**50,))}),
    "a zip bomb": zipped({"header.npy": HEADER, "array:x.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED),
    "no header": zipped({"array:x.npy": npy((1,), bytes(8))}),
    "a list for a header": zipped({"header.npy": npy((2,), b"[]", "|u1")}),
    "an unknown type": zipped({"header.npy": HEADER, "array:x.npy": npy((1,), bytes(8), "O")}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name):
    with pytest.raises(ValueError, match="not written by a sweep"):
        decode(signed(HOSTILE[name]))


LANES = [["U", "I", 0, 3]]


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_that_no_sweep_writes_are_refused(name):
    """A stranger can make the checksum right."""
    for odd in (
        None,
        "\0",
        -1,
        True,
        float("inf"),
        [None],
        [["U", "I", 0]],
        [[1]],
        {"a": 1},
        10**30,
    ):
        if name == "name" and isinstance(odd, str):
            continue
        with pytest.raises(ValueError, match=rf"not written by a sweep \(its {name}\)"):
            decode(encode(Saved({name: odd}, {})))


def test_what_a_file_lacks_is_named():
    header = {"lanes": LANES, "name": "a", "compile_seconds": 0.5, "run_seconds": 1}
    right = {"regret": np.ones((1, 4)), "final_gap": np.ones(1)}
    assert missing(Saved(header, right), finished=True) == []
    assert missing(Saved(header | {"episodes": 3}, {"['state']": np.ones(7)}), finished=False) == []
    assert missing(Saved(header, right), finished=False) == ["episodes"]
    assert missing(Saved({}, right), finished=True)[0] == "lanes"
    for name, array in {
        "regret": np.full((1, 4), np.nan), "final_gap": np.ones(2), "more": np.array(["x"]),
    }.items():  # fmt: skip
        assert missing(Saved(header, right | {name: array}), finished=True) == [name]
    assert missing(Saved(header, {}), finished=True) == ["regret"]
