"""Commands are frozen dataclasses whose fields all say what they mean."""

import dataclasses
import inspect

import pytest

from jaxbandit.cli import commands

ALL = [
    value
    for value in vars(commands).values()
    if inspect.isclass(value) and value.__module__ == commands.__name__
]


@pytest.mark.parametrize("command", ALL)
def test_a_command_is_frozen_and_documented(command):
    assert dataclasses.is_dataclass(command)
    assert command.__dataclass_params__.frozen
    assert command.__doc__
    source = inspect.getsource(command)
    own = [name for name in vars(command).get("__annotations__", {}) if name in source]
    assert source.count('"""') // 2 >= 1 + len(own), "a field without its text, which --help shows"
