"""What a name means: learners, instances, kinds of feedback, experiments and presets, in words.

`describe` reads the docstrings and signatures of what is registered, so a learner or an instance of
your own is described as well as those that come with the package. The command ``jaxbandit list
NAME`` prints the same text. jax starts only when the name is not that of an experiment alone.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from jaxbandit.checks import choice
from jaxbandit.explaining.descriptions import WIDTH, Description, Entry, Parameter
from jaxbandit.explaining.docstrings import entries, example, paragraphs
from jaxbandit.registry import near_names

KINDS = ("learner", "instance", "experiment", "feedback", "preset")


def describe(name: str, kind: str | None = None) -> Description:
    """What a learner, an instance, an experiment, a kind of feedback or a preset is, and takes.

    Args:
        name: such as "expref", "prophet-uniform", "semi-bandit", "practical".
        kind: "learner", "instance", "experiment", "feedback" or "preset"; without it, all that
            have the name.

    Returns:
        A value that prints as text (and as a table in notebooks); ``entries`` holds its parts.

    Example:
        >>> import jaxbandit as jb
        >>> jb.describe("uniform")
        uniform  (learner)
          Draws a new deterministic policy in every episode, uniformly among all of them.
        <BLANKLINE>
          jb.make_learner("uniform")
        ...
        >>> [entry.kind for entry in jb.describe("prophet").entries]
        ['instance', 'experiment']
        >>> jb.describe("exprf")
        Traceback (most recent call last):
        ...
        ValueError: name: 'exprf'; did you mean 'expref' ...accepted: ...
    """
    choice("kind", kind, (*KINDS, None))
    if not isinstance(name, str):
        raise ValueError(f"name: {name!r}; accepted: a string such as 'expref'")
    searched = KINDS if kind is None else (kind,)
    known = {each: names(each) for each in searched}
    found = [_DESCRIBE[each](name) for each in searched if name in known[each]]
    if not found:
        every = list(dict.fromkeys(one for listed in known.values() for one in listed))
        hint = near_names(name, every)
        raise ValueError(f"name: {name!r}; {hint}accepted: {', '.join(every)}")
    return Description(tuple(found))


def names(kind: str) -> list[str]:
    """All names of a kind, in order.

    Example:
        >>> names("feedback")
        ['one-bit', 'bandit', 'trajectory', 'segments:m', 'semi-bandit']
    """
    if kind == "experiment":
        from jaxbandit.experiment import catalogue

        return list(catalogue())
    if kind == "feedback":
        from jaxbandit import feedback

        return list(feedback.kinds())
    if kind == "preset":
        found = {preset: None for each in names("learner") for preset in presets(each)}
        return list(found)
    return _registry(kind).names()


def _registry(kind: str) -> Any:
    import jaxbandit

    return jaxbandit.LEARNERS if kind == "learner" else jaxbandit.INSTANCES


def summary(kind: str, name: str) -> str:
    """The first paragraph of the docstring of a learner or an instance, in one line.

    Example:
        >>> summary("learner", "oracle")
        'Plays the optimal policy, which it is told; its regret is exactly 0.'
    """
    return paragraphs(_registry(kind).constructors[name])[0]


def signature(kind: str, name: str) -> list[str]:
    """Parameters of a learner or an instance, those with a default as ``name=default``.

    Example:
        >>> signature("instance", "prophet-uniform")
        ['horizon', 'capacity', 'num_values']
    """
    parameters = inspect.signature(_registry(kind).constructors[name]).parameters.values()
    return [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]


def presets(learner: str) -> dict[str, dict[str, Any]]:
    """The presets of a learner, each with the parameters that it sets to other values than none.

    A preset is what the docstring's text on ``preset`` quotes and the constructor accepts.

    Example:
        >>> presets("ucbvi")["practical"]
        {'bonus_scale': 0.03125}
    """
    import numpy as np

    constructor = _registry("learner").constructors[learner]
    if "preset" not in inspect.signature(constructor).parameters:
        return {}
    told = {p.name: p.meaning for p in _parameters(constructor)}.get("preset", "")
    usual = constructor().params
    found = {}
    for preset in dict.fromkeys(re.findall(r'"([\w-]+)"', told)):
        try:
            params = constructor(preset=preset).params
        except ValueError:
            continue
        found[preset] = {
            name: float(value)
            for name, value in params.items()
            if np.ndim(value) == 0 and not np.array_equal(value, usual[name], equal_nan=True)
        }
    return found


def _constructed(kind: str) -> Callable[[str], Entry]:
    def entry(name: str) -> Entry:
        constructor = _registry(kind).constructors[name]
        first, *rest = paragraphs(constructor)
        needed = [
            f"{p.name}=..."
            for p in inspect.signature(constructor).parameters.values()
            if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        call = f"jb.make_{kind}({', '.join([chr(34) + name + chr(34), *needed])})"
        text = [textwrap.fill(part, WIDTH - 2, break_on_hyphens=False) for part in rest]
        if kind == "learner":
            text += _of_learner(name, constructor, needed)
        return Entry(
            name=name,
            kind=kind,
            summary=first,
            call=call,
            text="\n\n".join(text),
            parameters=_parameters(constructor),
            example=example(constructor),
        )

    return entry


def _of_learner(name: str, constructor: Callable, needed: list[str]) -> list[str]:
    """What it sees and the values of its presets."""
    lines = []
    if not needed:
        learner = constructor()
        sees = f"Sees {learner.feedback} feedback (jaxbandit list {learner.feedback})"
        told = f"; requires: {', '.join(learner.requires)}" if learner.requires else ""
        varied = [key for key, value in learner.params.items() if getattr(value, "ndim", 0) == 0]
        lines.append(f"{sees}{told}.")
        if varied:
            grid = f"A sweep can vary (jb.grid): {', '.join(varied)}."
            lines.append(textwrap.fill(grid, WIDTH - 2, break_on_hyphens=False))
    for preset, values in presets(name).items():
        shown = ", ".join(f"{key} {value:.6g}" for key, value in values.items())
        shown = shown or "every parameter as the paper or the default has it"
        lines.append(
            textwrap.fill(f'preset "{preset}": {shown}', WIDTH - 2, break_on_hyphens=False)
        )
    return ["\n".join(lines)] if lines else []


def _feedback(name: str) -> Entry:
    from jaxbandit import feedback

    shown = feedback.FEEDBACKS[name].fields
    first, *rest = paragraphs(shown)
    seen = [
        each
        for each in names("learner")
        if not _required("learner", each)
        and _registry("learner").constructors[each]().feedback == name
    ]
    text = [*rest, f"Learners that see it: {', '.join(seen)}."] if seen else rest
    call = f'jb.Learner(init, act, update, feedback="{name}")'
    joined = "\n\n".join(textwrap.fill(part, WIDTH - 2, break_on_hyphens=False) for part in text)
    return Entry(
        name=name,
        kind="feedback",
        summary=first,
        call=call,
        text=joined,
        parameters=_parameters(shown),
        heading="fields",
    )


def _required(kind: str, name: str) -> bool:
    return any("=" not in word for word in signature(kind, name))


def _preset(name: str) -> Entry:
    having = {each: presets(each) for each in names("learner")}
    rows = tuple(
        Parameter(each, "", ", ".join(f"{k} = {v:.6g}" for k, v in found[name].items()) or "-")
        for each, found in having.items()
        if name in found
    )
    meaning = (
        "The constants of the theorems: the guarantee holds; actions are eliminated late or never."
        if name == "theory"
        else "Constants chosen for low regret (jaxbandit run tuning); the guarantee is given up."
    )
    call = f'jb.make_learner("{rows[0].name}", preset="{name}")'
    return Entry(
        name=name,
        kind="preset",
        summary=meaning,
        call=call,
        text="",
        parameters=rows,
        heading="learner: what it sets",
    )


def _experiment(name: str) -> Entry:
    from jaxbandit.experiment import load_experiment

    experiment = load_experiment(name)
    first, *rest = paragraphs(experiment.description or "")
    rows = tuple(Parameter(file, "", meaning) for file, meaning in experiment.outputs.items())
    text = [*rest, *([f"Takes {experiment.takes}."] if experiment.takes else [])]
    text += [f"Reads the results of {', '.join(experiment.needs)}."] if experiment.needs else []
    joined = "\n\n".join(textwrap.fill(part, WIDTH - 2, break_on_hyphens=False) for part in text)
    return Entry(
        name=name,
        kind="experiment",
        summary=first,
        call=f"jaxbandit run {name}",
        text=joined,
        parameters=rows,
        heading="writes",
    )


def _parameters(thing: Any) -> tuple[Parameter, ...]:
    """Parameters of a constructor, or fields of a NamedTuple, with what their docstring says."""
    told = entries(thing)
    if hasattr(thing, "_fields"):
        return tuple(Parameter(name, "", told.get(name, "")) for name in thing._fields)
    return tuple(
        Parameter(name, "" if p.default is p.empty else repr(p.default), told.get(name, ""))
        for name, p in inspect.signature(thing).parameters.items()
    )


_DESCRIBE: dict[str, Callable[[str], Entry]] = {
    "learner": _constructed("learner"),
    "instance": _constructed("instance"),
    "experiment": _experiment,
    "feedback": _feedback,
    "preset": _preset,
}
