"""Signals reach the tests of sweeps also where the suite runs in the background of a shell or under nohup, which ignore some."""

import os
import signal
import subprocess
import sys

import pytest

DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}


@pytest.fixture(autouse=True)
def signals_are_heard():
    ignored = [each for each in DEFAULTS if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, DEFAULTS[each])
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)


@pytest.fixture
def printed():
    """Runs a program of Python in a process of its own, which must end well; gives what it printed."""

    def run(program, *arguments, **variables):
        command = [sys.executable, "-c", program, *map(str, arguments)]
        env = {**os.environ, **variables}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
