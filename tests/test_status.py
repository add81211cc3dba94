"""Output outlives its reader; the status line with its clock."""

import io
import os
import subprocess
import sys
import time
from contextlib import redirect_stderr

import pytest

from jaxbandit import status
from jaxbandit.status import spinner

COMMAND = [sys.executable, "-m", "jaxbandit.cli"]


def deaf_pipe():
    """A stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_stream_without_a_reader_forgets_what_it_is_told():
    writer = deaf_pipe()
    with open(writer, "w", encoding="utf-8") as raw:
        stream = status.Lasting(raw)
        assert stream.write("nobody\n") == 7
        stream.flush()
        stream.write("hears " * 10_000)
        stream.flush()
        assert stream.encoding == "utf-8"


@pytest.mark.parametrize("closed", ["both", "never open"])
def test_a_command_does_its_work_all_the_same(tmp_path, closed):
    command = [*COMMAND, "new", "learner", "mine"]
    if closed == "never open":
        command = ["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *command]
    deaf = {name: deaf_pipe() for name in ("stdout", "stderr") if closed == "both"}
    done = subprocess.run(command, cwd=tmp_path, check=False, **deaf)
    for writer in deaf.values():
        os.close(writer)
    assert done.returncode == 0
    assert "def " in (tmp_path / "mine.py").read_text()


def test_no_file_takes_the_place_of_a_stream_that_was_never_open(tmp_path):
    """Else all that XLA prints would be written into it."""
    program = (
        "from jaxbandit import status\n"
        "with status.lasting_output(), open('mine.txt', 'w') as file:\n"
        "    file.write(str(file.fileno()))\n"
    )
    closing = ["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", sys.executable, "-c", program]
    subprocess.run(closing, cwd=tmp_path, check=True)
    assert int((tmp_path / "mine.txt").read_text()) > 2


def test_names_of_files_do_nothing_to_a_terminal(capsys):
    """Also those with bytes that are no text."""
    name = "no\x1b[31mwhere\x9b\udcff\u202e"
    before = sys.stdout, sys.stderr
    with status.lasting_output():
        print(f"{name}\tdone\n", end="")
        print(name, file=sys.stderr)
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert out == "no\\x1b[31mwhere\\x9b\\udcff\\u202e\tdone\n"
    assert err.isascii()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_terminal_the_clock_runs(monkeypatch):
    monkeypatch.setattr(status, "TICK", 0.01)
    with redirect_stderr(Terminal()) as terminal, spinner("drawing"):
        deadline = time.monotonic() + 30
        while terminal.getvalue().count("\r") < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert terminal.getvalue().startswith("drawing\rdrawing 0 s\r")
    assert terminal.getvalue().endswith(" s\n")


def test_an_error_ends_the_line():
    terminal = Terminal()
    with pytest.raises(KeyError), redirect_stderr(terminal), spinner("reading"):
        raise KeyError
    assert terminal.getvalue().endswith("\n")
