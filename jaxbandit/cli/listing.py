"""``jaxbandit list``: names with their parameters, or everything about one name."""

from __future__ import annotations

from jaxbandit.cli.commands import List

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
            print(describe(command.what))
        except ValueError as error:
            raise ValueError(f"{error}, or all, {', '.join(GROUPS)}") from None
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
            print(f"  {name:22} {summary}")
    elif kind in ("learner", "instance"):
        print(f"{group} (jaxbandit.make_{kind}(NAME, ...))")
        for name in describing.names(kind):
            taken = ", ".join(describing.signature(kind, name))
            print(f"  {name:22} {describing.summary(kind, name)}\n  {'':22}   ({taken})")
    else:
        print(f"{group} ({'what a learner sees' if kind == 'feedback' else 'of learners'})")
        for name in describing.names(kind):
            print(f"  {name:22} {describing.describe(name, kind).entries[0].summary}")
