"""The command line: ``jaxbandit list | run | show | new | plot | report | merge | doctor | bench``.

`commands` has the subcommands as frozen dataclasses and reads them, `actions` does them; `driver` runs experiments
(`shards` in parts), `report` writes HTML pages, and `templates` are the files that `jaxbandit new` writes.
jax, xarray and matplotlib are imported when a command needs them, so that ``--help`` answers at
once. Exit codes: 0 done, 1 a file could not be read or written or `doctor` found something wrong,
2 a mistake in what was asked for, 130 interrupted. From outside: `main`. May import: everything.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import jaxbandit
from jaxbandit.cli.commands import PROGRAM, parse
from jaxbandit.cli.terminal import lasting_output

__all__ = ["main"]


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


def _main(given: list[str]) -> int:  # noqa: PLR0911  (one per way to end)
    if given == ["--version"]:
        print(f"{PROGRAM} {jaxbandit.__version__}")
        return 0
    try:
        return _do(given)
    except SystemExit as stop:  # how tyro answers --help
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        again = shlex.join([PROGRAM, *(a for a in given if a not in ("--resume", "--overwrite"))])
        hint = f"; to continue: {again} --resume" if given[:1] == ["run"] else ""
        return _fail(f"interrupted{hint}", 130)
    except (ValueError, FileExistsError, FileNotFoundError) as error:
        return _fail(f"{error}{_place(error, given)[0]}", 2)
    except OSError as error:
        return _fail(str(error), 1)
    except Exception as error:
        if "Unable to initialize backend" in str(error):  # jax says it so
            return _fail(f"JAX_PLATFORMS: {os.environ.get('JAX_PLATFORMS')!r}; {error}", 2)
        if type(error).__name__ == "CheckpointError":
            return _fail(f"{error} (resume=False is --overwrite here)", 2)
        place, innermost = _place(error, given)
        if not innermost:  # a bug of ours, or a use of a library that only its trace explains
            raise
        return _fail(f"{type(error).__name__}: {error}{place}", 2)


def _do(given: list[str]) -> int:
    if given[:1] == ["bench"]:
        from jaxbandit.experiments.bench import main as benchmark

        return int(benchmark(given[1:]) or 0)
    from jaxbandit.cli import actions

    if given[:1] == ["run"] and {"--help", "-h"} & set(given):
        actions.explain_experiment(given)
    command = parse(given or ["--help"])
    return actions.ACTIONS[type(command)](command) or 0


def _place(error: BaseException, given: Sequence[str]) -> tuple[str, bool]:
    """Where in a user's own file the error came from, and whether it was raised there itself."""
    files = [str(Path(word).resolve()) for word in given if word.endswith(".py")]
    trace, line, inside = error.__traceback__, "", False
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        inside = str(file.resolve()) in files
        if inside:
            line = f" ({file.name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return line, inside


def _fail(message: str, code: int) -> int:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return code
