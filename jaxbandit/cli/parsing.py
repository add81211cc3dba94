"""From words to a command; every mistake is answered in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from collections.abc import Sequence
from typing import Any

import tyro

from jaxbandit.cli.commands import ALIASES, COMMANDS, Command

PROGRAM = "jaxbandit"
DESCRIPTION = (
    "Regret experiments in episodic MDPs under bandit feedback: many seeds and instances at once. "
    "Start with `jaxbandit run prophet`; `jaxbandit list NAME` explains a name; "
    "`jaxbandit --version` prints the version."
)


class NotWholeError(Exception):
    """A word that is no whole number; not a ValueError, which tyro would put into a box."""


def parse(given: Sequence[str]) -> Any:
    """The command as one of the dataclasses; raises SystemExit after help, ValueError after a
    mistake.

    Example:
        >>> parse(["list", "expref"])
        List(what='expref')
        >>> parse(["run", "prophet", "--episodes", "1.5e0"])
        Traceback (most recent call last):
        ...
        ValueError: --episodes: 1.5e0; accepted: a whole number, such as 2000000, 2_000_000 or 2e6
        >>> parse(["run", "prophet", "--sedes", "3"])
        Traceback (most recent call last):
        ...
        ValueError: unknown option --sedes; did you mean '--seeds'? see jaxbandit run --help
    """
    _check_words(given)
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_whole_numbers)
    options = (
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.PositionalMetavarFromFieldName,
        tyro.conf.DisallowNone,
    )
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Command,
                prog=PROGRAM,
                description=DESCRIPTION,
                args=list(given),
                config=options,
                registry=registry,
            )
    except NotWholeError as error:
        place = next((j for j, word in enumerate(given) if word == error.args[0]), 0)
        option = given[place - 1] if given[place - 1].startswith("--") else "number"
        accepted = "a whole number, such as 2000000, 2_000_000 or 2e6"
        raise ValueError(f"{option}: {error.args[0]}; accepted: {accepted}") from None
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise ValueError(_one_line(complaint.getvalue(), given[0])) from None


def _check_words(given: Sequence[str]) -> None:
    """The command and the names of its options are known."""
    first = given[0]
    if first in ("-h", "--help"):
        return
    if first.startswith("-"):
        raise ValueError(
            f"unknown option {first}; accepted: --help, --version, or a command: {', '.join(COMMANDS)}"
        )
    if first not in COMMANDS:
        from jaxbandit.checks import did_you_mean  # numpy with it, which --help need not wait for

        hint = did_you_mean(first, COMMANDS, most=1)
        raise ValueError(f"unknown command {first!r}; {hint}accepted: {', '.join(COMMANDS)}")
    known = [f"--{f.name.replace('_', '-')}" for f in dataclasses.fields(COMMANDS[first])]
    for word in given[1:]:
        option = word.split("=")[0].replace("_", "-")
        if option.startswith("--") and option not in (*known, *ALIASES, "--help"):
            from jaxbandit.checks import did_you_mean

            hint = did_you_mean(option, known, most=1, alike=0.6)
            raise ValueError(f"unknown option {option}; {hint}see {PROGRAM} {first} --help")


def _one_line(box: str, command: str) -> str:
    """What tyro put into a box."""
    lines = [line.strip(" │╭╮╰╯─") for line in box.splitlines()[1:]]
    text = " ".join(" ".join(lines).split())
    choice = re.search(
        r"invalid choice '(.*?)' for argument '(?:--)?([\w-]+)'\. Expected one of \((.*?)\)", text
    )
    if choice:
        accepted = ", ".join(re.findall(r"'([^']*)'", choice[3]))
        return f"{choice[2]}: {choice[1]!r}; accepted: {accepted}"
    missing = re.match(r"Missing from .*?: (\S+)", text)
    if missing:
        return f"{missing[1]} is missing; see {PROGRAM} {command} --help"
    said = text.split(" Argument helptext")[0].split(" For full helptext")[0]
    return f"{said or 'not understood'}; see {PROGRAM} {command} --help"


def _whole_numbers(kind: Any) -> Any:
    """Numbers of episodes may be written 2000000, 2_000_000 or 2e6."""
    if kind.type is not int:
        return None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole_number(words[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    )


def whole_number(word: str) -> int:
    """The number that a word writes.

    Example:
        >>> whole_number("2e6"), whole_number("2_000")
        (2000000, 2000)
    """
    try:
        number = float(word) if "e" in word.lower() else int(word)
        whole = int(number)
    except (ValueError, OverflowError):
        raise NotWholeError(word) from None
    if number != whole:
        raise NotWholeError(word)
    return whole
