"""Errors that a caller catches by name have public homes and are what callers expect."""

import pytest

import jaxbandit as jb


def test_public_homes():
    assert jb.SweepInterrupted is jb.errors.SweepInterrupted
    assert jb.CheckpointError is jb.errors.CheckpointError


@pytest.mark.parametrize(
    ("error", "caught_as"),
    [
        (jb.SweepInterrupted, KeyboardInterrupt),
        (jb.CheckpointError, RuntimeError),
        (jb.errors.LearnerError, ValueError),
    ],
)
def test_they_are_caught_as_their_kind(error, caught_as):
    with pytest.raises(caught_as, match="why"):
        raise error("why")
