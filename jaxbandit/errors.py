"""The errors that a caller may want to catch by name; all others are ValueError, TypeError and
OSError."""

from __future__ import annotations


class CheckpointError(RuntimeError):
    """The checkpoint cannot be used or written; the message says why and what to do."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; the message says what was saved and how to continue."""


class LearnerError(ValueError):
    """A learner did what no learner may do; the message names it, the episode and the place."""


class HiddenFieldError(LearnerError, AttributeError):
    """A learner read a field that its feedback does not have."""


class LostProcessError(RuntimeError):
    """Another process of a distributed run has ended; the message says how to go on."""
