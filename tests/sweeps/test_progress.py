"""What the host loop shows, and what it does when it is told to stop."""

import os
import signal

import pytest
from sweep_program import configuration

import jaxbandit as jb
from jaxbandit.sweeps.progress import Display, Interruption
from jaxbandit.xla.programs import PROGRAMS


def test_a_second_ctrl_c_stops_at_once(capsys):
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "stopping after this chunk" in capsys.readouterr().err


def test_other_signals_never_raise():
    with Interruption() as interruption:
        for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGTERM"):
            os.kill(os.getpid(), getattr(signal, name))
            assert interruption.requested
            assert interruption.cause == name


@pytest.mark.parametrize(("show", "visible"), [(True, False), ("always", True), (False, False)])
def test_progress_is_silent_without_a_terminal_unless_asked(capsys, show, visible):
    jb.sweep(**configuration(only="UCB-VI", num_episodes=2000, num_seeds=3, progress=show))
    text = capsys.readouterr().err
    assert ("episodes/s" in text) == visible
    assert ("100%" in text) == visible


def test_what_is_compiled_is_said(capsys):
    with Display(100, "always", programs=2) as display:
        for words in ("ucbvi, H=3 k=2 A=3", "expref, H=3 k=2 A=3"):
            for listener in PROGRAMS.listeners:
                listener(words, True)
            display._bar.refresh()
            for listener in PROGRAMS.listeners:
                listener(words, False)
        display.skip(40)
        display.advance(60)
    assert not PROGRAMS.listeners
    text = capsys.readouterr().err
    assert "compiling ucbvi, H=3 k=2 A=3 (1 of 2)" in text
    assert "compiling expref, H=3 k=2 A=3 (2 of 2)" in text
    assert "60.0/60.0" in text
