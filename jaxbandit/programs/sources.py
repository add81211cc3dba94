"""What a function is, as text: its syntax, the names it uses, what it imports.

Source is read as syntax, without comments, white space and docstrings, so that it is the same in every version of Python.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import importlib.util
import inspect
import linecache
import sys
import textwrap
import tokenize
import types
import warnings
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from jaxbandit.programs.libraries import is_installed, version_of


def names_in(code: types.CodeType) -> set[str]:
    """Globals and attributes that a function names, its inner functions included."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*(names_in(each) for each in inner))


def bare_names_in(code: types.CodeType) -> set[str]:
    """The globals that a function names without naming something in them, its inner functions included.

    Example:
        >>> sorted(bare_names_in((lambda: (ast.parse, handed_on(dis))).__code__))
        ['dis', 'handed_on']
    """
    steps = list(dis.get_instructions(code))
    pairs = zip(steps, [*steps[1:], None], strict=True)
    found = {
        step.argval
        for step, then in pairs
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        and (then is None or then.opname not in ("LOAD_ATTR", "LOAD_METHOD"))
    }
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return found.union(*(bare_names_in(each) for each in inner))


def modules_in(code: types.CodeType) -> list[types.ModuleType]:
    """The modules whose names stand in a function as texts, its inner functions included.

    Example:
        >>> [module.__name__ for module in modules_in((lambda: importlib.import_module("json")).__code__)]
        ['json']
    """
    found = [_named_module(const) for const in code.co_consts if isinstance(const, str)]
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found += modules_in(const)
    return [module for module in found if module is not None]


def _named_module(text: str) -> types.ModuleType | None:
    """The module of that name, imported unless it is a library's."""
    if not text.replace(".", "_").isidentifier():
        return None
    try:
        found = sys.modules.get(text)
        return found if found is not None or is_installed(text) else importlib.import_module(text)
    except Exception:
        return None


def imports_in(function: types.FunctionType) -> list[tuple[str, Any]]:
    """What a function imports when it runs: names and modules, or what they hold; libraries stay unloaded.

    Example:
        >>> def inside():
        ...     from jaxbandit.theory import schedule
        >>> [(name, value.__name__) for name, value in imports_in(inside)]
        [('jaxbandit.theory.schedule', 'schedule')]
    """
    package = function.__globals__.get("__package__") or ""
    found: dict[str, Any] = {}
    for name, level, wanted in _import_statements(function.__code__):
        try:
            full = importlib.util.resolve_name("." * level + name, package) if level else name
            if is_installed(full):
                found[full] = ("library", version_of(full))
                continue
            module = importlib.import_module(full)
        except Exception as error:  # of any kind: it is the user's module, and may never be needed
            found[name] = ("not importable", type(error).__name__)
            continue
        if not wanted:
            top = full.split(".")[0]
            found |= {full: module, top: sys.modules[top]}
        for each in wanted or ():
            found[f"{full}.{each}"] = _member(module, full, each)
    return sorted(found.items(), key=itemgetter(0))


def _member(module: types.ModuleType, full: str, name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (
                getattr(module, name)
                if hasattr(module, name)
                else importlib.import_module(f"{full}.{name}")
            )
    except Exception as error:
        return ("not importable", type(error).__name__)


def _import_statements(code: types.CodeType) -> Iterator[tuple[str, int, tuple[str, ...] | None]]:
    """(module, level, names) of every import; the two are pushed just before."""
    before: list[Any] = [None, None]
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            yield instruction.argval, int(before[0] or 0), before[1]
        if instruction.opname.startswith("LOAD_"):
            before = [before[1], instruction.argval]
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _import_statements(const)


def source_of(function: types.FunctionType) -> Any:
    """The function's syntax tree, or its instructions where no text says what it does (it was typed at a prompt, made by
    another program, or its file has been edited since it was imported)."""
    code = function.__code__
    try:
        text = Path(code.co_filename).read_bytes()
    except (OSError, ValueError):  # a cell of a notebook
        text = "".join(linecache.getlines(code.co_filename)).encode()
    return _syntax_of(code, text) or ("code", sys.version_info[:2], _instructions(code))


@functools.lru_cache(maxsize=4096)
def _syntax_of(code: types.CodeType, text: bytes) -> Any:
    """The syntax of a function, without docstrings, in the text of its file as it is now; None if it is not there.

    Times of files would not tell: they may be replaced by older ones, and modules are imported before this one.
    """
    lines = _lines_in(text, code.co_filename).get(_instructions(code), ())
    line = min(lines, key=lambda line: abs(line - code.co_firstlineno), default=None)
    if line is None:
        return None
    try:
        # of the code, not of the function: what `functools.wraps` made would be taken for what it wraps
        source = inspect.getsource(code.replace(co_firstlineno=line))
        tree = ast.parse(textwrap.dedent(source))
    except (OSError, TypeError, SyntaxError, ValueError, tokenize.TokenError, IndexError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(node, body[0]):
            del body[0]
    return _syntax(tree)


@functools.lru_cache(maxsize=256)
def _lines_in(text: bytes, file: str) -> dict[Any, list[int]]:
    """The first lines of all functions in a file, by their instructions."""
    found: dict[Any, list[int]] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting = [compile(text, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return found
    while waiting:
        code = waiting.pop()
        found.setdefault(_instructions(code), []).append(code.co_firstlineno)
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return found


def _syntax(node: Any) -> Any:
    """A syntax tree as plain data. Text would not do: versions of Python write the same f-string differently."""
    if isinstance(node, list):
        return [_syntax(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    # Versions add fields, which are empty in older code.
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return (
        type(node).__name__,
        [(name, _syntax(value)) for name, value in sorted(fields, key=itemgetter(0))],
    )


def _is_docstring(node: ast.AST, first: ast.stmt) -> bool:
    holders = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return isinstance(node, holders) and constant and isinstance(first.value.value, str)  # type: ignore[attr-defined]


def _instructions(code: types.CodeType) -> Any:
    return (code.co_name, code.co_code, code.co_names, code.co_varnames, _constant(code.co_consts))


def _constant(value: Any) -> Any:
    """A constant of a function, without the order of a set, which is another in every process."""
    if isinstance(value, types.CodeType):
        return _instructions(value)
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, value)))
    return tuple(map(_constant, value)) if isinstance(value, tuple) else repr(value)
