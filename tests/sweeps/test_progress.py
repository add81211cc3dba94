"""What the host loop shows, and what it does when it is told to stop."""

import os
import signal

import pytest
from sweep_program import configuration

import jaxbandit as jb
from jaxbandit.sweeps.lanes import Tile
from jaxbandit.sweeps.progress import Display, Forecast, Interruption
from jaxbandit.xla.programs import PROGRAMS


def test_a_second_ctrl_c_stops_at_once_and_other_signals_never_do(capsys):
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGTERM"):
            os.kill(os.getpid(), getattr(signal, name))
            assert (interruption.requested, interruption.cause) == (True, name)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert (interruption.requested, interruption.cause) == (True, "Ctrl-C")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "stopping after this chunk" in capsys.readouterr().err


IGNORED = """
import faulthandler, os, signal, sys
from jaxbandit.sweeps.progress import Interruption
faulthandler.register(signal.SIGUSR1, file=sys.stdout)
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
for _ in range(2):
    with Interruption() as interruption:
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
            os.kill(os.getpid(), getattr(signal, name))
    assert not interruption.requested
os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_ignored_signals_stay_ignored_and_faulthandler_keeps_its_own(printed):
    """As under nohup, in a background job, and for users who ask where a process hangs."""
    assert printed(IGNORED).count("most recent call first") == 3


@pytest.mark.parametrize(("show", "visible"), [(True, False), ("always", True), (False, False)])
def test_progress_is_silent_without_a_terminal_unless_asked(capsys, show, visible):
    jb.sweep(**configuration(only="UCB-VI", num_episodes=2000, num_seeds=3, progress=show))
    text = capsys.readouterr().err
    assert ("episodes [" in text) == visible
    assert ("100%" in text) == visible


def test_what_is_compiled_is_said(capsys):
    tiles = [Tile(group, (("UCB-VI", f"I{group}", 0, 0),)) for group in (1, 2, 3)]
    names = {1: "UCB-VI, H=3 k=2", 2: "UCB-VI, H=4 k=2", 3: "UCB-VI, H=5 k=2"}

    def compile_one():
        for begins in (True, False):
            for listener in PROGRAMS.listeners:
                listener("ucbvi", begins)
            display._bar.refresh()

    with Display(tiles, 100, "always", 1, names, done=100, begun=40) as display:
        display.begin(tiles[0])
        compile_one()
        display.skip(40, tiles[0])
        display.advance(60, tiles[0], 0.1)
        display.begin(tiles[1])
        display.advance(100, tiles[1], 0.1)  # its program was there already
        display.begin(tiles[2])
        compile_one()
        display.advance(100, tiles[2], 0.1)
    assert not PROGRAMS.listeners
    text = capsys.readouterr().err
    assert "going on from the checkpoint: 35 % of the episodes were played already" in text
    assert "compiling UCB-VI, H=3 k=2 (1 of 3)" in text
    assert "compiling UCB-VI, H=5 k=2 (2 of 2)" in text
    assert "UCB-VI on I3" in text
    assert "400/400 episodes" in text


def test_compilations_are_named_after_the_learners_of_the_sweep(capsys):
    learners = {
        "UCB-VI (theory)": jb.make_learner("ucbvi"),
        "UCB-VI (practical)": jb.make_learner("ucbvi", preset="practical"),
    }
    # sizes that no other test has, so that something is compiled
    mdp = jb.make_instance("prophet-uniform", horizon=7, capacity=1, num_values=3)
    jb.sweep(learners, {"I1": mdp}, num_episodes=20, num_seeds=1, progress="always")
    assert "compiling UCB-VI, H=7 k=1 (1 of 1)" in capsys.readouterr().err


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def test_compilations_to_come_are_counted():
    clock = Clock()
    forecast = Forecast({"a": 100, "b": 300, "c": 100}, clock=clock)
    for seconds in (10.0, 1.0):  # the second program of a group does not change what one takes
        forecast.begins("a")
        clock.now += seconds
        forecast.ends("a")
    assert forecast.left() is None  # no rate yet
    forecast.plays("a", 50, seconds=5.0)
    # 50 of a, 400 of the others at 0.1 s, and two compilations of 10 s
    assert forecast.left() == 5.0 + 40.0 + 20.0
    forecast.begins("b")
    clock.now += 4.0
    assert forecast.left() == 5.0 + 40.0 + 6.0 + 10.0
    assert forecast.waiting() == 1


def test_workers_share_what_a_checkpoint_has_not():
    forecast = Forecast({"a": 150}, workers=2, clock=Clock())
    forecast.work["a"].episodes -= 50
    forecast.plays("a", 20, seconds=2.0)  # without a compilation: the program was there
    assert forecast.waiting() == 0
    assert forecast.left() == 8.0 / 2
