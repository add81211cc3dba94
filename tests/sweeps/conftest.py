"""Signals reach the tests of sweeps also where the suite runs in the background of a shell, which ignores Ctrl-C."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
