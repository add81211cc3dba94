"""One writer for all tables: aligned text, markdown, LaTeX or CSV from the same cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from jaxbandit.checks import typed

FORMATS = ("text", "markdown", "latex", "csv")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"$<$",
    ">": r"$>$",
}


def write_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    format: str = "text",
    *,
    right: Sequence[int] = (),
    rule: bool = False,
) -> str:
    """The cells as a table without a newline at its end.

    Args:
        head: names of the columns.
        rows: one sequence of cells per row, as long as ``head``.
        format: "text" (columns two spaces apart), "markdown", "latex" (a ``tabular`` with the rules
            of the package booktabs) or "csv" (quoted as RFC 4180 says, lines end in a newline).
        right: indices of the columns that are aligned to the right.
        rule: in text, dashes under the head; the other formats have rules of their own.

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
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(f"format: {format!r}; accepted: {', '.join(FORMATS)}")
    for row in rows:
        if len(row) != len(head):
            raise ValueError(
                f"rows: {list(row)!r} has {len(row)} cells; accepted: {len(head)}, as many as head"
            )
    lines = [list(head), *map(list, rows)]
    if format == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        return text.getvalue().removesuffix("\n")
    if format == "latex":
        return _latex(lines, right)
    if (
        format == "markdown"
    ):  # a bar would end the cell, a line break the row; names are no links and no HTML
        lines = [
            [re.sub(r"([|<\[])", r"\\\1", cell).replace("\n", " ") for cell in line]
            for line in lines
        ]
    lines, widths = _aligned(lines, right)
    if format == "text":
        dashes = [["-" * width for width in widths]] if rule else []
        return "\n".join("  ".join(line).rstrip() for line in [lines[0], *dashes, *lines[1:]])
    bars = ["-" * (width + 1) + (":" if j in right else "-") for j, width in enumerate(widths)]
    first, *others = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([first, f"|{'|'.join(bars)}|", *others])


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


def _aligned(lines: list[list[str]], right: Sequence[int]) -> tuple[list[list[str]], list[int]]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        [
            cell.rjust(width) if j in right else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ], widths


def _latex(lines: list[list[str]], right: Sequence[int]) -> str:
    plain = [
        ["".join(_LATEX.get(letter, letter) for letter in cell) for cell in line] for line in lines
    ]
    aligned, _ = _aligned(plain, right)
    first, *others = [f"  {' & '.join(line).rstrip()} \\\\" for line in aligned]
    columns = "".join("r" if j in right else "l" for j in range(len(lines[0])))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"  \toprule",
            first,
            r"  \midrule",
            *others,
            r"  \bottomrule",
            r"\end{tabular}",
        ]
    )
