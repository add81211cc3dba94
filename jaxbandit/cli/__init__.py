"""The command line: ``jaxbandit list | run | show | new | plot | report | merge | doctor | bench``.

Here the command is read, and every mistake is answered in one line; `commands` has the subcommands, their options and
what they do, `driver` runs experiments, also in shards, `report` writes HTML pages, `doctor` looks at the machine, and
`templates` are the files that `jaxbandit new` writes. jax, xarray and matplotlib are imported when a command needs them,
so that ``--help`` answers at once. Exit codes: 0 done, 1 a file could not be read or written or `doctor` found something
wrong, 2 a mistake in what was asked for, 130 interrupted. From outside: `main`. May import: everything.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_type_hints

import tyro

import jaxbandit
from jaxbandit.checks import did_you_mean
from jaxbandit.cli.commands import COMMANDS
from jaxbandit.errors import CheckpointError
from jaxbandit.experiment import catalogue
from jaxbandit.status import lasting_output

__all__ = ["main"]

PROGRAM = "jaxbandit"
DESCRIPTION = (
    "Regret experiments in episodic MDPs under bandit feedback: many seeds and instances at once. "
    "Start with `jaxbandit run prophet`; `jaxbandit list NAME` explains a name; "
    "`jaxbandit --version` prints the version."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``jaxbandit``; returns the exit code.

    Example:
        >>> import jaxbandit.cli
        >>> jaxbandit.cli.main(["--version"])
        jaxbandit 0.2.0
        0
    """
    with lasting_output():
        return _main(list(sys.argv[1:] if arguments is None else arguments))


def _main(given: list[str]) -> int:
    try:
        return _do(given)
    except SystemExit as stop:  # how tyro answers --help
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        again = shlex.join([PROGRAM, *(a for a in given if a not in ("--resume", "--overwrite"))])
        hint = f"; to continue: {again} --resume" if given[:1] == ["run"] else ""
        message, code = f"interrupted{hint}", 130
    except (ValueError, FileExistsError, FileNotFoundError) as error:
        message, code = f"{error}{_place(error, given)[0]}", 2
    except OSError as error:
        message, code = str(error), 1
    except Exception as error:
        place, innermost = _place(error, given)
        message, code = f"{type(error).__name__}: {error}{place}", 2
        if "Unable to initialize backend" in str(error):  # jax says it so
            message = f"JAX_PLATFORMS: {os.environ.get('JAX_PLATFORMS')!r}; {error}"
        elif isinstance(error, CheckpointError):
            message = f"{error} (resume=False is --overwrite here)"
        elif not innermost:  # a bug of ours, or a use of a library that only its trace explains
            raise
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return code


def _do(given: list[str]) -> int:
    if given == ["--version"]:
        print(f"{PROGRAM} {jaxbandit.__version__}")
        return 0
    if given[:1] == ["bench"]:  # has options of its own
        from jaxbandit.experiments.bench import main as benchmark

        return int(benchmark(given[1:]) or 0)
    if given[:1] == ["run"] and {"--help", "-h"} & set(given):
        for name in {*given} & {*catalogue()}:
            print(f"{jaxbandit.describe(name, 'experiment')}\n")
    return parse(given or ["--help"]).do() or 0


def _place(error: BaseException, given: Sequence[str]) -> tuple[str, bool]:
    """Where in a user's own file the error came from, and whether it was raised there itself."""
    files = {str(Path(word).resolve()) for word in given if word.endswith(".py")}
    trace = traceback.extract_tb(error.__traceback__)
    own = [step for step in trace if str(Path(step.filename).resolve()) in files]
    line = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return line, bool(own) and own[-1] is trace[-1]


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
    _check_names(given)
    conf, registry = tyro.conf, tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_whole_numbers)
    named = tuple(Annotated[c, conf.subcommand(name)] for name, c in COMMANDS.items())
    commands: Any = Union[named]  # noqa: UP007
    marks = (conf.FlagCreatePairsOff, conf.PositionalMetavarFromFieldName, conf.DisallowNone)
    how: dict[str, Any] = {"prog": PROGRAM, "description": DESCRIPTION, "config": marks}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(commands, args=list(given), registry=registry, **how)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise ValueError(_one_line(complaint.getvalue(), given[0])) from None


def _check_names(given: Sequence[str]) -> None:
    """The command and the names of its options are known."""
    first, listed = given[0], ", ".join(COMMANDS)
    if first in ("-h", "--help"):
        return
    if first.startswith("-"):
        accepted = f"--help, --version, or a command: {listed}"
        raise ValueError(f"unknown option {first}; accepted: {accepted}")
    if first not in COMMANDS:
        hint = did_you_mean(first, COMMANDS, most=1)
        raise ValueError(f"unknown command {first!r}; {hint}accepted: {listed}")
    known = _options(COMMANDS[first])
    for word in given[1:]:
        option = word.split("=")[0].replace("_", "-")
        if not option.startswith("--") or option in (*known, "--help"):
            continue
        if option == "--seed" and "--seeds" in known:
            raise ValueError(
                "--seed: could mean two things; accepted: --seeds N for the number of runs, "
                "--root-seed N for the key of all randomness"
            )
        near = did_you_mean(option[2:], [name[2:] for name in known], most=1, alike=0.6)
        hint = near.replace("mean '", "mean '--")
        raise ValueError(f"unknown option {option}; {hint}see {PROGRAM} {first} --help")


def _options(command: type) -> list[str]:
    """The options of a command as they are typed, other names included."""
    found = []
    for name, hint in get_type_hints(command, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        named = [mark.name for mark in marks if getattr(mark, "name", None)] or [name]
        found += [f"--{each.replace('_', '-')}" for each in named]
        found += [alias for mark in marks for alias in getattr(mark, "aliases", None) or ()]
    return found


def _one_line(box: str, command: str) -> str:
    """What tyro put into a box."""
    text = " ".join(re.sub("[│╭╮╰╯]|[─-]{4,}", " ", box.partition("\n")[2]).split())
    choice = re.search(
        r"invalid choice '(.*?)' for argument '(?:--)?([\w-]+)'\. Expected one of \((.*?)\)", text
    )
    if choice:
        accepted = ", ".join(re.findall(r"'([^']*)'", choice[3]))
        return f"{choice[2]}: {choice[1]!r}; accepted: {accepted}"
    refused = re.match(
        r"Error parsing (\S+): (?:.*'int'>: )?(.*; accepted: .*?) Argument help", text
    )
    if refused:
        return f"{refused[1]}: {refused[2]}"
    missing = re.match(r"Missing from .*?: (\S+)", text)
    if missing:
        return f"{missing[1]} is missing; see {PROGRAM} {command} --help"
    said = re.split(" Argument helptext| For full helptext", text)[0]
    said = re.sub(r"`?\[/?bold\]`?", "", said)
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
    with contextlib.suppress(ValueError, OverflowError):
        number = float(word) if "e" in word.lower() else int(word)
        if number == int(number):
            return int(number)
    raise ValueError(f"{word}; accepted: a whole number, such as 2000000, 2_000_000 or 2e6")
