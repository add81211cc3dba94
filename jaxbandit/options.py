"""Keyword arguments that several functions take: declared and explained once, in a TypedDict.

    class Looks(TypedDict, total=False):
        '''What all figures take.

        Fields:
            title: above the axes.
        '''

        title: str | None

    @spelled_out(Looks)
    def draw(x, **looks: Unpack[Looks]): ...

Type checkers see the arguments by ``Unpack``; `spelled_out` shows them to everything that asks at run
time: `inspect.signature`, `help`, `jaxbandit.describe`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def spelled_out(options: type, **defaults: Any) -> Callable[[Function], Function]:
    """Decorator: shows the ``**keywords`` of a function as the arguments that ``options`` declares.

    The function itself stays as it is (no wrapper, so that its examples are found); its body asks
    `known` to refuse other names.

    Args:
        options: a TypedDict whose docstring explains every field under "Fields:".
        defaults: of the options; None for those that are not given.

    Example:
        >>> from typing import TypedDict
        >>> class Looks(TypedDict, total=False):
        ...     '''What all figures take.
        ...
        ...     Fields:
        ...         title: above the axes.
        ...     '''
        ...     title: str
        >>> @spelled_out(Looks, title="none")
        ... def draw(x, **looks):
        ...     '''Draws.
        ...
        ...     Args:
        ...         x: a number.
        ...     '''
        >>> list(inspect.signature(draw).parameters), inspect.getdoc(draw).splitlines()[-1]
        (['x', 'title'], '    title: above the axes.')
    """

    def decorate(function: Function) -> Function:
        plain = inspect.signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in own}
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name),
                annotation=getattr(hint, "__forward_arg__", hint),
            )
            for name, hint in options.__annotations__.items()
            if name not in taken
        ]
        function.__signature__ = plain.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        if function.__doc__:  # python -OO drops docstrings
            function.__doc__ = _explained(function, options)
        return function

    return decorate


def known(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given``, the keywords of a call to a function that `spelled_out` shows, filled up with the
    defaults; a name that it does not have is a TypeError, as Python's own.

    Example:
        >>> def draw(x, *, title=None): ...
        >>> known(draw, {"title": "one"})
        {'title': 'one'}
        >>> known(draw, {"titel": "one"})
        Traceback (most recent call last):
        ...
        TypeError: draw() got an unexpected keyword argument 'titel'
    """
    parameters = inspect.signature(function).parameters.values()
    options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for name in given:
        if name not in options:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
    return options | dict(given)


def _explained(function: Callable[..., Any], options: type) -> str:
    """The function's docstring with the fields of ``options`` in its section "Args:", but for those
    that it explains itself."""
    lines = (inspect.getdoc(function) or "").splitlines()
    fields = (inspect.getdoc(options) or "").splitlines()
    fields = fields[fields.index("Fields:") + 1 :]
    if "Args:" not in lines:
        at = next((j for j, line in enumerate(lines) if line in ("Returns:", "Example:")), None)
        at = len(lines) if at is None else at
        lines[at:at] = ["Args:", ""]
    start = lines.index("Args:") + 1
    end = next((j for j in range(start, len(lines)) if not lines[j].strip()), len(lines))
    own = {line.split(":")[0].strip() for line in lines[start:end] if _begins(line)}
    kept: list[str] = []
    wanted = True
    for line in fields:
        wanted = line.split(":")[0].strip() not in own if _begins(line) else wanted
        kept += [line] if wanted and line.strip() else []
    return "\n".join([*lines[:end], *kept, *lines[end:]])


def _begins(line: str) -> bool:
    """Whether a line begins the text on an argument: ``    name: meaning``."""
    return line.startswith("    ") and line[4:5].isalpha() and ":" in line
