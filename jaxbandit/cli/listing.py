"""``jaxbandit list``: names with their parameters, or everything about one name."""

from __future__ import annotations

import shutil
import textwrap

from jaxbandit.cli.commands import List
from jaxbandit.waiting import waiting

COLUMN = 22
"""Width of the column of names."""
GROUPS = {
    "experiments": "experiment",
    "learners": "learner",
    "instances": "instance",
    "feedback": "feedback",
    "presets": "preset",
}


def show_list(command: List) -> None:
    """Prints names, parameters and defaults, or the description of one name."""
    from jaxbandit.explaining.describing import describe

    if command.what not in ("all", *GROUPS):
        try:
            with waiting(
                f"looking up {command.what}", elsewhere=False
            ):  # jax takes its time to start
                found = str(describe(command.what))
        except ValueError as error:
            raise ValueError(f"{error}, or all, {', '.join(GROUPS)}") from None
        print(found)
        return
    for group, kind in GROUPS.items():
        if command.what in ("all", group):
            _print_group(group, kind)
    if command.what == "all":
        print("everything about one of them: jaxbandit list NAME")


def _print_group(group: str, kind: str) -> None:
    from jaxbandit.explaining import describing

    if kind == "experiment":
        from jaxbandit.experiment import catalogue

        print("experiments (jaxbandit run NAME)")
        for name, summary in catalogue().items():
            _print_entry(name, summary)
    elif kind in ("learner", "instance"):
        print(f"{group} (jaxbandit.make_{kind}(NAME, ...))")
        for name in describing.names(kind):
            taken = ", ".join(describing.signature(kind, name))
            _print_entry(name, describing.summary(kind, name))
            _print_entry("", f"  ({taken})")
    else:
        print(f"{group} ({'what a learner sees' if kind == 'feedback' else 'of learners'})")
        for name in describing.names(kind):
            _print_entry(name, describing.describe(name, kind).entries[0].summary)


def _print_entry(name: str, text: str) -> None:
    """A name and what it is, in as many lines as the terminal makes of it."""
    width = max(60, shutil.get_terminal_size((100, 50)).columns)
    lead = f"  {name:{COLUMN}} "
    if len(name) > COLUMN:
        print(f"  {name}")
        lead = " " * (COLUMN + 3)
    print(textwrap.fill(f"{lead}{text}", width, subsequent_indent=" " * (COLUMN + 5)))
