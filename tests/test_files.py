"""Files are whole or absent, whatever happens while they are written."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from jaxbandit import files
from jaxbandit.files import lock_folder, read_file, write_atomically


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


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_many_that_write_one_new_name_at_once_one_claims_it(tmp_path, overwrite):
    path, outcomes, ready = tmp_path / "numbers", [], threading.Barrier(8)

    def write(number):
        ready.wait()
        try:
            write_atomically(path, bytes([number]) * 1000, overwrite=overwrite)
            outcomes.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == (8 if overwrite else 1)
    assert path.read_bytes() in [bytes([number]) * 1000 for number in outcomes]
    assert os.listdir(tmp_path) == ["numbers"]


def test_a_new_file_that_another_writer_takes_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """The other one locks it between its creation and its lock, and removes it a moment later."""
    lock, others = files._lock, []

    def too_late(descriptor, **how):
        if not others:
            (path,) = tmp_path.iterdir()
            other = os.open(path, os.O_RDWR)
            assert lock(other)
            remove = threading.Timer(0.05, lambda: (path.unlink(), os.close(other)))
            others.append(remove)
            remove.start()
        return lock(descriptor, **how)

    monkeypatch.setattr(files, "_lock", too_late)
    write_atomically(tmp_path / "numbers", b"1", overwrite=False)
    others[0].join()
    assert os.listdir(tmp_path) == ["numbers"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_names_of_any_length_links_and_modes(tmp_path, overwrite):
    for length in (250, 255):
        write_atomically(tmp_path / ("n" * length), b"long", overwrite=overwrite)
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    write_atomically(link, b"first", overwrite=overwrite)
    assert link.is_symlink()
    target.chmod(0o640)
    write_atomically(link, b"second")
    assert link.is_symlink()
    assert target.read_bytes() == b"second"
    assert target.stat().st_mode & 0o777 == 0o640


def test_only_what_a_killed_writer_left_is_removed(tmp_path):
    """A real kill -9 in the middle of a write, beside files of the user's with such names."""
    program = """
import os, sys, time, pathlib
from jaxbandit.files import write_atomically
def wait(descriptor):
    print("writing", flush=True)
    time.sleep(60)
os.fsync = wait
write_atomically(pathlib.Path(sys.argv[1]), b"half")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "numbers"], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    users = {"mine.unfinished", "numbers.123.unfinished", ".jaxbandit-mine.unfinished"}
    for name in users:
        (tmp_path / name).write_bytes(b"the user's")
    write_atomically(tmp_path / "other", b"")  # while the writer lives, its file stays
    assert len(os.listdir(tmp_path)) == len(users) + 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    write_atomically(tmp_path / "other", b"")
    assert set(os.listdir(tmp_path)) == users | {"other"}


def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**43)
    assert read_file(tmp_path / "file") == read_file(tmp_path / "link", follow=True) == b"content"
    began = time.monotonic()
    for name, reason in {"link": "a link", "pipe": "not a regular", "sparse": "at most"}.items():
        with pytest.raises(OSError, match=reason):
            read_file(tmp_path / name)
    with pytest.raises(OSError, match="at most 6 are read"):
        read_file(tmp_path / "file", limit=6)
    assert time.monotonic() - began < 1


def test_a_lock_is_held_by_one_and_let_go_once(tmp_path):
    held = lock_folder(tmp_path)
    with pytest.raises(OSError, match="another sweep is using this directory"):
        lock_folder(tmp_path)
    held.close()
    held.close()
    lock_folder(tmp_path).close()
