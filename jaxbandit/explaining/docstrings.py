"""Docstrings as data: paragraphs, the list of arguments or fields, the example."""

from __future__ import annotations

import html
import inspect
import re
from typing import Any

_SECTIONS = ("Args:", "Fields:", "Returns:", "Example:")


def paragraphs(thing: Any) -> list[str]:
    """The paragraphs before the first section, each as one line; at least one, perhaps empty.

    Example:
        >>> def f(x):
        ...     '''One
        ...     line.
        ...
        ...     Args:
        ...         x: a number.
        ...     '''
        >>> paragraphs(f)
        ['One line.']
    """
    text = thing if isinstance(thing, str) else inspect.getdoc(thing) or ""
    kept = []
    for line in inspect.cleandoc(text).splitlines():
        if line.strip() in _SECTIONS:
            break
        kept.append(line)
    parts = [" ".join(part.split()) for part in "\n".join(kept).strip().split("\n\n")]
    return parts or [""]


def entries(thing: Any) -> dict[str, str]:
    """Name -> meaning of the section "Args:" or "Fields:", in order.

    Example:
        >>> def f(x, y):
        ...     '''Adds.
        ...
        ...     Args:
        ...         x: a number
        ...             or two.
        ...         y: another.
        ...     '''
        >>> entries(f)
        {'x': 'a number or two.', 'y': 'another.'}
    """
    found: dict[str, str] = {}
    name = ""
    for line in _section(thing, ("Args:", "Fields:")):
        start = re.match(r"    (\w+): (.*)", line)
        # a continuation may be indented as little as an entry: only known words begin one
        if start and (start[1] in _names(thing) or not _names(thing)):
            name = start[1]
            found[name] = start[2]
        elif name:
            found[name] += f" {line.strip()}"
    return {key: " ".join(value.split()) for key, value in found.items()}


def example(thing: Any) -> str:
    """The lines of the section "Example:".

    Example:
        >>> example(example)[:11]
        '>>> example'
    """
    lines = _section(thing, ("Example:",))
    return inspect.cleandoc("\n".join(lines)).strip() if lines else ""


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


def _section(thing: Any, heads: tuple[str, ...]) -> list[str]:
    """The indented lines under the first of the headings."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    starts = [j for j, line in enumerate(lines) if line.strip() in heads]
    if not starts:
        return []
    kept = []
    for line in lines[starts[0] + 1 :]:
        if line.strip() and not line.startswith("    "):
            break
        kept.append(line)
    return kept


def _names(thing: Any) -> list[str]:
    """The words that an entry may begin with."""
    fields = getattr(thing, "_fields", None)
    if fields is not None:
        return list(fields)
    return list(inspect.signature(thing).parameters) if callable(thing) else []
