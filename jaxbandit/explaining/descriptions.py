"""What a name means, as a value that prints: as text, and as a table in notebooks."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

from jaxbandit.explaining.docstrings import as_html, as_text

WIDTH = 96
"""Columns of the text."""


class Parameter(NamedTuple):
    """One parameter, field, or preset value, with its default and what it means."""

    name: str
    default: str
    """As Python writes it; empty if there is none."""
    meaning: str


@dataclass(frozen=True)
class Entry:
    """One meaning of a name."""

    name: str
    kind: str
    """learner, instance, experiment, feedback or preset."""
    summary: str
    call: str
    """How it is used."""
    text: str = ""
    """Further paragraphs."""
    parameters: tuple[Parameter, ...] = ()
    heading: str = "parameters"
    """What the parameters are called."""
    example: str = ""

    def __str__(self) -> str:
        """As text."""
        lines = [f"{self.name}  ({self.kind})", *_wrapped(self.summary, 2), "", f"  {self.call}"]
        if self.text:
            lines += ["", textwrap.indent(as_text(self.text), "  ")]
        if self.parameters:
            lines += ["", f"  {self.heading}"]
            wide = max(len(_with_default(p)) for p in self.parameters)
            for p in self.parameters:
                lead = f"    {_with_default(p):{min(wide, 34)}}  "
                first, *rest = textwrap.wrap(as_text(p.meaning), WIDTH - len(lead)) or [""]
                lines += [f"{lead}{first}".rstrip(), *(" " * len(lead) + line for line in rest)]
        if self.example:
            lines += ["", "  example", textwrap.indent(self.example, "    ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.name)}</b> ({self.kind})</p>\n{self.body()}"

    def body(self) -> str:
        """As HTML, without the name."""
        defaults = any(p.default for p in self.parameters)
        rows = "".join(
            f"<tr><td><code>{html.escape(p.name)}</code></td>"
            + (f"<td>{html.escape(p.default)}</td>" if defaults else "")
            + f'<td style="text-align:left">{as_html(p.meaning)}</td></tr>'
            for p in self.parameters
        )
        more = "<th>default</th>" if defaults else ""
        head = f"<tr><th>{html.escape(self.heading)}</th>{more}<th></th></tr>"
        parts = [
            f"<p>{as_html(self.summary)}</p>",
            f"<p><code>{html.escape(self.call)}</code></p>",
            *(f"<p>{_lines(part)}</p>" for part in self.text.split("\n\n") if part.strip()),
            f"<table>{head}{rows}</table>" if rows else "",
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


def _lines(paragraph: str) -> str:
    """A paragraph as HTML; what begins a line with a preset's name stays a line of its own."""
    return as_html(paragraph).replace("\npreset ", "<br>\npreset ")


def _with_default(p: Parameter) -> str:
    return f"{p.name} = {p.default}" if p.default else p.name


def _wrapped(text: str, indent: int) -> list[str]:
    return [" " * indent + line for line in textwrap.wrap(as_text(text), WIDTH - indent)]
