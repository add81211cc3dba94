"""One table value: aligned text, markdown, LaTeX, CSV or HTML from the same cells."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbandit.checks import accept, typed

FORMATS = ("text", "markdown", "latex", "csv")
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{character: f"${character}$" for character in "<>"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Table:
    """Cells under a head, in any format; a notebook shows it as HTML.

    Example:
        >>> table = Table(("learner", "regret"), (("UCB-VI", "1,500"), ("ExpRef", "20")), right=(1,))
        >>> print(table)
        learner  regret
        UCB-VI    1,500
        ExpRef       20
        >>> table.to("html")[:56]
        "<table><tr><th style='text-align:left'>learner</th><th s"
    """

    head: Sequence[str]
    """Names of the columns."""
    rows: Sequence[Sequence[str]]
    """One sequence of cells per row, as long as ``head``."""
    right: Sequence[int] = ()
    """Indices of the columns that are aligned to the right."""
    rule: bool = False
    """In text, dashes under the head; the other formats have rules of their own."""
    note: str = ""
    """A line under the table; in LaTeX a comment, and in CSV it is left out."""
    title: str = ""
    """A line above the table, likewise; in HTML its caption."""

    def __post_init__(self) -> None:
        """Refuses rows that do not fit the head."""
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(
                    f"rows: {list(row)!r} has {len(row)} cells; accepted: {len(self.head)}, as many as head"
                )

    def to(self, format: str = "text") -> str:
        """The table as "text", "markdown", "latex", "csv" or "html", without a newline at its end."""
        accept("format", format, (*FORMATS, "html"))
        text = getattr(self, f"_{format}")([list(self.head), *map(list, self.rows)])
        apart = {"text": "\n", "markdown": "\n\n", "latex": "\n"}.get(format, "")
        comment = "% " if format == "latex" else ""
        if format in ("csv", "html"):
            return text
        above = f"{comment}{self.title}{apart}" if self.title else ""
        return above + text + (f"{apart}{comment}{self.note}" if self.note else "")

    def __str__(self) -> str:
        """The table as text."""
        return self.to()

    def _repr_html_(self) -> str:
        return self.to("html")

    def _csv(self, lines: list[list[str]]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        return text.getvalue().removesuffix("\n")

    def _text(self, lines: list[list[str]]) -> str:
        aligned, widths = self._aligned(lines)
        dashes = [["-" * width for width in widths]] if self.rule else []
        return "\n".join("  ".join(line).rstrip() for line in [aligned[0], *dashes, *aligned[1:]])

    def _markdown(self, lines: list[list[str]]) -> str:
        # A bar would end the cell, a line break the row; names are no links and no HTML.
        plain = [
            [re.sub(r"([|<\[])", r"\\\1", c).replace("\n", " ") for c in line] for line in lines
        ]
        aligned, widths = self._aligned(plain)
        bars = ["-" * (w + 1) + (":" if j in self.right else "-") for j, w in enumerate(widths)]
        first, *others = [f"| {' | '.join(line)} |" for line in aligned]
        return "\n".join([first, f"|{'|'.join(bars)}|", *others])

    def _latex(self, lines: list[list[str]]) -> str:
        plain = [[cell.translate(_LATEX) for cell in line] for line in lines]
        first, *others = [f"  {' & '.join(line).rstrip()} \\\\" for line in self._aligned(plain)[0]]
        columns = "".join("r" if j in self.right else "l" for j in range(len(self.head)))
        above = [rf"\begin{{tabular}}{{{columns}}}", r"  \toprule", first, r"  \midrule"]
        return "\n".join([*above, *others, r"  \bottomrule", r"\end{tabular}"])

    def _html(self, lines: list[list[str]]) -> str:
        # notebooks align to the right what does not say otherwise
        ends = ["right" if j in self.right else "left" for j in range(len(self.head))]
        rows = [
            "".join(
                f"<{tag} style='text-align:{end}'>{html.escape(cell)}</{tag}>"
                for end, cell in zip(ends, line, strict=True)
            )
            for tag, line in zip(["th"] + ["td"] * len(self.rows), lines, strict=True)
        ]
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return f"<table>{title}{''.join(f'<tr>{row}</tr>' for row in rows)}</table>{note}"

    def _aligned(self, lines: list[list[str]]) -> tuple[list[list[str]], list[int]]:
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        fit = [str.rjust if j in self.right else str.ljust for j in range(len(widths))]
        fitted = [[f(c, w) for f, c, w in zip(fit, line, widths, strict=True)] for line in lines]
        return fitted, widths


def write_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    format: str = "text",
    *,
    right: Sequence[int] = (),
    rule: bool = False,
    note: str = "",
) -> str:
    """The cells as a table without a newline at its end: `Table` in one call.

    ``format`` is "text" (columns two spaces apart), "markdown", "latex" (a ``tabular`` with the rules of the package
    booktabs) or "csv" (quoted as RFC 4180 says, lines end in a newline); the others are the fields of `Table`.

    Example:
        >>> rows = [["UCB-VI", "1,500"], ["ExpRef", "20"]]
        >>> print(write_table(["learner", "regret"], rows, "markdown", right=[1]))
        | learner | regret |
        |---------|-------:|
        | UCB-VI  |  1,500 |
        | ExpRef  |     20 |
        >>> print(write_table(["learner", "regret"], rows, "csv"))
        learner,regret
        UCB-VI,"1,500"
        ExpRef,20
    """
    accept("format", format, FORMATS)
    return Table(head=head, rows=rows, right=right, rule=rule, note=note).to(format)


def records(argument: str, rows: Any, kind: type, accepted: str) -> list[Any]:
    """The rows of a table as a list of records of one kind, or an error that says what is accepted.

    Example:
        >>> records("rows", 3, tuple, "what final_table gives")
        Traceback (most recent call last):
        ...
        TypeError: rows: int; accepted: what final_table gives
    """
    if not isinstance(rows, list | tuple) or isinstance(rows, kind):
        raise TypeError(f"{argument}: {type(rows).__name__}; accepted: {accepted}")
    return [typed(argument, row, kind, accepted) for row in rows]
