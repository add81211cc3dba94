"""The line with the clock."""

import io
import time
from contextlib import redirect_stderr

import pytest

from jaxbandit import waiting as module
from jaxbandit.waiting import waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_terminal_the_clock_runs(monkeypatch):
    monkeypatch.setattr(module, "TICK", 0.01)
    with redirect_stderr(Terminal()) as terminal, waiting("drawing"):
        deadline = time.monotonic() + 30
        while terminal.getvalue().count("\r") < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert terminal.getvalue().startswith("drawing\rdrawing 0 s\r")
    assert terminal.getvalue().endswith(" s\n")


def test_an_error_ends_the_line():
    terminal = Terminal()
    with (
        pytest.raises(ValueError, match="no such file"),
        redirect_stderr(terminal),
        waiting("reading"),
    ):
        raise ValueError("no such file")
    assert terminal.getvalue().endswith("\n")


def test_elsewhere_one_line_is_printed(capsys):
    with waiting("drawing"):
        pass
    assert capsys.readouterr().err == "drawing\n"
