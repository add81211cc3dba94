"""What a name means: learners, instances, experiments, kinds of feedback and presets.

`describe` prints the docstrings, signatures and presets of what is registered, so that a learner or an
instance of your own is described as well as those that come with the package. The command ``jaxbandit
list NAME`` prints the same text. jax starts only when the name is not that of an experiment alone.
"""

from __future__ import annotations

import html
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxbandit.checks import choice
from jaxbandit.registry import near_names

KINDS = ("learner", "instance", "experiment", "feedback", "preset")
WIDTH = 96
"""Columns of the text."""
SECTIONS = ("Args:", "Fields:", "Returns:", "Example:")
PRESETS = {
    "theory": "The constants of the theorems: the guarantee holds, and actions are eliminated late or never.",
    "practical": "Constants tuned for low regret (jaxbandit run tuning), without a guarantee.",
    "practical-paper-exploration": "As practical, but exploring with the paper's probability k/(2H), and tuned for that.",
    "practical-bernstein": "As practical, but with the Bernstein bonus of UCBVI-BF, and tuned for that.",
}
"""What the presets are for; what they set is read from the learners."""
SMALL: dict[str, Any] = {
    "horizon": 8,
    "capacity": 2,
    "num_values": 5,
    "num_arms": 5,
    "means": [0.2, 0.5, 0.8],
    "num_actions": 3,
    "width": 2,
    "budget": 3,
    "num_downs": 2,
    "gap": 0.25,
    "values": [[1, 3, 8], [2, 4, 6], [0, 5, 9], [1, 2, 7]],
    "rewards": [[3, 1], [2, 4], [5, 1], [2, 2]],
    "costs": [[1, 0], [1, 2], [2, 1], [1, 1]],
}
"""What `small_instance` takes for parameters that are not given."""


class Parameter(NamedTuple):
    """One parameter, field, or preset value: ``default`` as Python writes it, or "", and what it means."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Entry:
    """One meaning of a name.

    Fields:
        name: as it is registered.
        kind: learner, instance, experiment, feedback or preset.
        summary: the first paragraph.
        call: how it is used.
        text: further paragraphs.
        parameters: what it takes, or holds.
        heading: what the parameters are called.
        example: as in a docstring.
    """

    name: str
    kind: str
    summary: str
    call: str
    text: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    heading: str = "parameters"
    example: str = ""

    def __str__(self) -> str:
        """As text."""
        wrap = textwrap.TextWrapper(WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)  # fmt: skip
        lines = [f"{self.name}  ({self.kind})", *wrap.wrap(as_text(self.summary))]
        lines += ["", f"  {self.call}"]
        for paragraph in self.text:
            lines += ["", *(x for line in paragraph.split("\n") for x in wrap.wrap(as_text(line)))]
        if self.parameters:
            lines += ["", f"  {self.heading}"]
            named = [f"{p.name} = {p.default}" if p.default else p.name for p in self.parameters]
            wide = min(max(map(len, named)), 34)
            for name, p in zip(named, self.parameters, strict=True):
                lead = f"    {name:{wide}}  "
                first, *rest = textwrap.wrap(as_text(p.meaning), WIDTH - len(lead)) or [""]
                lines += [f"{lead}{first}".rstrip(), *(" " * len(lead) + line for line in rest)]
        if self.example:
            lines += ["", "  example", textwrap.indent(self.example, "    ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.name)}</b> ({self.kind})</p>\n{self.body()}"

    def body(self) -> str:
        """As HTML, without the name."""
        more = any(p.default for p in self.parameters)
        table = [
            f"<tr><th>{html.escape(self.heading)}</th>{'<th>default</th>' * more}<th></th></tr>"
        ]
        for p in self.parameters:
            default = f"<td>{html.escape(p.default)}</td>" * more
            meaning = f'<td style="text-align:left">{as_html(p.meaning)}</td>'
            table += [f"<tr><td><code>{html.escape(p.name)}</code></td>{default}{meaning}</tr>"]
        parts = [
            f"<p>{as_html(self.summary)}</p>",
            f"<p><code>{html.escape(self.call)}</code></p>",
            *(f"<p>{as_html(part)}</p>".replace("\n", "<br>\n") for part in self.text),
            f"<table>{''.join(table)}</table>" if self.parameters else "",
            f"<pre>{html.escape(self.example)}</pre>" if self.example else "",
        ]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, repr=False)
class Description:
    """Everything that a name means; prints as text, and as a table in notebooks."""

    entries: tuple[Entry, ...]

    def __repr__(self) -> str:
        """As text."""
        return "\n\n".join(map(str, self.entries))

    def _repr_html_(self) -> str:
        return "\n<hr>\n".join(entry._repr_html_() for entry in self.entries)


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
        ValueError: name: 'exprf'; did you mean 'expref'? accepted: the names that jaxbandit list prints
    """
    choice("kind", kind, (*KINDS, None))
    if not isinstance(name, str):
        raise ValueError(f"name: {name!r}; accepted: a string such as 'expref'")
    known = {each: names(each) for each in (KINDS if kind is None else (kind,))}
    others = {"experiment": _experiment, "feedback": _feedback, "preset": _preset}
    found = [others.get(each, _constructed)(name, each) for each in known if name in known[each]]
    if not found:
        hint = near_names(name, dict.fromkeys(x for each in known.values() for x in each), most=1)
        raise ValueError(f"name: {name!r}; {hint}accepted: the names that jaxbandit list prints")
    return Description(tuple(found))


def names(kind: str) -> list[str]:
    """All names of a kind, in order.

    Example:
        >>> names("preset")
        ['theory', 'practical', 'practical-paper-exploration', 'practical-bernstein']
    """
    if kind == "experiment":
        from jaxbandit.experiment import catalogue

        return list(catalogue())
    if kind == "feedback":
        from jaxbandit import feedback

        return list(feedback.kinds())
    if kind == "preset":
        return list(dict.fromkeys(x for each in names("learner") for x in presets(each)))
    return _registry(kind).names()


def feedback_of(learner: str) -> str:
    """The kind of feedback that a learner sees; "" if it cannot be made without arguments.

    Example:
        >>> feedback_of("ucbvi"), feedback_of("fixed")
        ('semi-bandit', '')
    """
    constructor = _registry("learner").constructors[learner]
    return "" if _needed(constructor) else constructor().feedback


def _needed(constructor: Callable[..., Any]) -> list[str]:
    """The parameters without a default."""
    parameters = inspect.signature(constructor).parameters.values()
    return [p.name for p in parameters if p.default is p.empty]


def presets(learner: str) -> dict[str, dict[str, float]]:
    """The presets of a learner, each with the parameters that it sets to other values than the
    default. They are the keys of ``PRESETS`` in the module of its constructor.

    Example:
        >>> presets("ucbvi")["practical"]
        {'bonus_scale': 0.03125}
    """
    import numpy as np

    constructor = _registry("learner").constructors[learner]
    if "preset" not in inspect.signature(constructor).parameters:
        return {}
    listed = getattr(sys.modules[constructor.__module__], "PRESETS", {})
    usual = constructor().params
    return {
        preset: {
            name: float(value)
            for name, value in constructor(preset=preset).params.items()
            if np.ndim(value) == 0 and not np.array_equal(value, usual[name], equal_nan=True)
        }
        for preset in listed.get(learner, listed)
    }


def small_instance(
    name: str, given: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[Any, dict[str, str]]:
    """The instance, with small values for what is not given, and the parameters that it got.

    Example:
        >>> mdp, parameters = small_instance("prophet-random", {"horizon": 3})
        >>> mdp, parameters["key"]
        (MDP(H=3, k=2, A=5, ordered), 'jax.random.key(0)')
    """
    import jax

    from jaxbandit.instances import INSTANCES, make_instance

    given = given or {}
    if name not in INSTANCES.constructors:
        make_instance(name)  # raises the error that names near matches
    wanted = inspect.signature(INSTANCES.constructors[name]).parameters
    drawn = "key" in wanted and not {"theta", "down_stages", "down_actions"} & set(given)
    needed = _needed(INSTANCES.constructors[name])
    if "horizon" in wanted and isinstance(wanted["horizon"].default, int):
        needed.append("horizon")  # a default may be long
    if name == "bandit" and "probabilities" not in given:
        needed += ["means"]
    if name.startswith("hard-"):
        needed += ["gap"] + (["horizon", "num_downs"] if drawn else [])
    used = {**{key: SMALL[key] for key in needed if key in SMALL and key in wanted}, **given}
    if "probabilities" in needed and "probabilities" not in used:
        rows = used["values" if "values" in wanted else "rewards"]
        used["probabilities"] = [[1 / len(row)] * len(row) for row in rows]
    taken = used or {key: p.default for key, p in wanted.items()}
    shown = {key: _shortened(value) for key, value in taken.items()}
    if drawn:
        used["key"], shown["key"] = jax.random.key(seed), f"jax.random.key({seed})"
    return make_instance(name, **used), shown


def _shortened(value: Any) -> str:
    """Lists of numbers with three digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(_shortened, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _registry(kind: str) -> Any:
    import jaxbandit

    return jaxbandit.LEARNERS if kind == "learner" else jaxbandit.INSTANCES


def _constructed(name: str, kind: str) -> Entry:
    constructor = _registry(kind).constructors[name]
    first, *rest = paragraphs(constructor)
    words = [f'"{name}"', *(f"{each}=..." for each in _needed(constructor))]
    more = _of_learner(name, constructor) if kind == "learner" else []
    call, taken = f"jb.make_{kind}({', '.join(words)})", _parameters(constructor)
    text = (*rest, *more)
    return Entry(name, kind, first, call, text=text, parameters=taken, example=example(constructor))


def _of_learner(name: str, constructor: Callable[..., Any]) -> list[str]:
    """What it sees and the values of its presets."""
    lines = []
    if not _needed(constructor):
        learner = constructor()
        more = f"; requires: {', '.join(learner.requires)}" if learner.requires else ""
        lines.append(f"Sees {learner.feedback} feedback (jaxbandit list {learner.feedback}){more}.")
        varied = [key for key, value in learner.params.items() if getattr(value, "ndim", 0) == 0]
        lines += [f"A sweep can vary (jb.grid): {', '.join(varied)}."] if varied else []
    for preset, values in presets(name).items():
        shown = ", ".join(f"{key} {value:.6g}" for key, value in values.items())
        lines.append(f'preset "{preset}": {shown or "every parameter as in the paper"}')
    return ["\n".join(lines)] if lines else []


def _feedback(name: str, kind: str) -> Entry:
    from jaxbandit import feedback

    shown = feedback.FEEDBACKS[name].fields
    first, *rest = paragraphs(shown)
    seen = [each for each in names("learner") if feedback_of(each) == name]
    rest += [f"Learners that see it: {', '.join(seen)}."] if seen else []
    call = f'jb.Learner(init, act, update, feedback="{name}")'
    how: dict[str, Any] = {"parameters": _parameters(shown), "heading": "fields"}
    return Entry(name, kind, first, call, text=tuple(rest), **how)


def _preset(name: str, kind: str) -> Entry:
    having = {each: presets(each) for each in names("learner")}
    rows = tuple(
        Parameter(each, "", ", ".join(f"{k} = {v:.6g}" for k, v in found[name].items()) or "-")
        for each, found in having.items()
        if name in found
    )
    text = PRESETS.get(name, "A preset of one learner.")
    call = f'jb.make_learner("{rows[0].name}", preset="{name}")'
    return Entry(name, kind, text, call, parameters=rows, heading="learner: what it sets")


def _experiment(name: str, kind: str) -> Entry:
    from jaxbandit.experiment import load_experiment

    experiment = load_experiment(name)
    first, *rest = paragraphs(experiment.description or "")
    rest += [f"Takes {experiment.takes}."] if experiment.takes else []
    rest += [f"Reads the results of {', '.join(experiment.needs)}."] if experiment.needs else []
    rows = tuple(Parameter(file, "", what) for file, what in experiment.outputs.items())
    how: dict[str, Any] = {"parameters": rows, "heading": "writes"}
    return Entry(name, kind, first, f"jaxbandit run {name}", text=tuple(rest), **how)


def _parameters(thing: Any) -> tuple[Parameter, ...]:
    """Parameters of a constructor, or fields of a NamedTuple, with what their docstring says."""
    meanings = entries(thing)
    if hasattr(thing, "_fields"):
        return tuple(Parameter(name, "", meanings.get(name, "")) for name in thing._fields)
    return tuple(
        Parameter(name, "" if p.default is p.empty else repr(p.default), meanings.get(name, ""))
        for name, p in inspect.signature(thing).parameters.items()
    )


def _sections(thing: Any) -> dict[str, list[str]]:
    """The lines of a docstring by the heading above them; those before the first are under ""."""
    text = thing if isinstance(thing, str) else inspect.getdoc(thing) or ""
    found: dict[str, list[str]] = {"": []}
    lines = found[""]
    for line in inspect.cleandoc(text).splitlines():
        if line.strip() in SECTIONS:
            lines = found.setdefault(line.strip(), [])
        elif lines is found[""] or not line.strip() or line.startswith("    "):
            lines.append(line)
        else:  # text after a section
            lines = []
    return found


def paragraphs(thing: Any) -> list[str]:
    """The paragraphs of a docstring before its first section, each as one line; at least one.

    Example:
        >>> paragraphs("One\\nline.\\n\\nArgs:\\n    x: a number.")
        ['One line.']
    """
    text = "\n".join(_sections(thing)[""])
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def entries(thing: Any) -> dict[str, str]:
    """Name -> meaning of the section "Args:" or "Fields:" of a docstring, in order.

    Example:
        >>> entries(entries), entries(describe)["name"][:7]
        ({}, 'such as')
    """
    parts = _sections(thing)
    lines = parts.get("Args:") or parts.get("Fields:")
    if not lines:
        return {}
    fields = getattr(thing, "_fields", None)
    known = list(fields or (inspect.signature(thing).parameters if callable(thing) else ()))
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        start = re.match(r"    (\w+): (.*)", line)
        # a continuation may be indented as little as an entry: only known words begin one
        if start and (start[1] in known or not known):
            name = start[1]
            found[name] = start[2]
        elif name:
            found[name] += f" {line.strip()}"
    return {key: " ".join(value.split()) for key, value in found.items()}


def example(thing: Any) -> str:
    """The section "Example:" of a docstring, with the import of the function if it calls it bare.

    Example:
        >>> example(paragraphs).splitlines()[0]
        '>>> from jaxbandit.description import paragraphs'
    """
    shown = inspect.cleandoc("\n".join(_sections(thing).get("Example:", []))).strip()
    name = getattr(thing, "__name__", "")
    if re.search(rf"(?<![\w.]){name}\(", shown) and f"import {name}" not in shown:
        shown = f">>> from {thing.__module__} import {name}\n{shown}"
    return shown


def as_html(text: str) -> str:
    """Text with names in backticks as HTML.

    Example:
        >>> as_html("from ``key`` if theta < 1 (`theory`)")
        'from <code>key</code> if theta &lt; 1 (<code>theory</code>)'
    """
    return re.sub(r"(`{1,2})([^`]+)\1", r"<code>\2</code>", html.escape(text))


def as_text(text: str) -> str:
    """Text without the marks around names.

    Example:
        >>> as_text("from ``key``")
        'from key'
    """
    return re.sub(r"``([^`]+)``", r"\1", text)
