"""Files are whole or absent, whatever happens while they are written."""

import os

import pytest

from jaxbandit.files import MARK, lock_folder, temporary_name, write_atomically


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "numbers"
    for content in (b"old", b"new and longer"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["numbers"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    path = tmp_path / "numbers"
    write_atomically(path, b"old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["numbers"]


def test_temporary_names_are_beside_the_file_and_marked(tmp_path):
    name = temporary_name(tmp_path / "numbers")
    assert name.parent == tmp_path
    assert name.name.endswith(MARK)


def test_a_lock_is_held_by_one_and_let_go_once(tmp_path):
    held = lock_folder(tmp_path)
    with pytest.raises(OSError, match="another sweep is using this directory"):
        lock_folder(tmp_path)
    held.close()
    held.close()
    lock_folder(tmp_path).close()
