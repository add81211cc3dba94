"""Signals reach the tests of sweeps also where the suite runs in the background of a shell or under nohup, which ignore some."""

import signal

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
