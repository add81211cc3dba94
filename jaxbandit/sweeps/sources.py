"""What a function is, as text: its syntax, the names it uses, what it imports; and what is a library.

Source is read as syntax, without comments, white space and docstrings, so that it is the same in every version of Python.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import sysconfig
import textwrap
import time
import tokenize
import types
import warnings
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

PACKAGE = __name__.split(".")[0]
_STARTED = time.time()
_INSTALLED = {"site-packages", "dist-packages"}
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)


@functools.lru_cache(maxsize=4096)
def is_library(module: str | None, file: str | None = None) -> bool:
    """Whether something is installed and so known by its version; this package itself is looked into.

    Example:
        >>> is_library("numpy"), is_library("jaxbandit.learners.ucbvi"), is_library("json")
        (True, False, True)
    """
    top = (module or "").split(".")[0]
    if top == PACKAGE:
        return (module or "").startswith(
            f"{PACKAGE}.xla"
        )  # how programs are compiled, not what they do
    if top == "__main__" and file is None:  # a prompt, a notebook or a script
        return False
    if file is None:
        file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None or file.startswith("<"):  # in the interpreter itself, or typed at a prompt
        return top in sys.stdlib_module_names
    path = Path(file).resolve()
    # The folders of this interpreter's environment, and of those that it builds upon.
    return str(path).startswith(_LIBRARIES) or not _INSTALLED.isdisjoint(path.parts)


@functools.lru_cache(maxsize=1024)
def version_of(module: str | None) -> str:
    """The version of the library that a module belongs to."""
    top = (module or "").split(".")[0]
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return f"python {sys.version_info.major}" if top in sys.stdlib_module_names else "unknown"


def names_in(code: types.CodeType) -> set[str]:
    """Globals and attributes that a function names, its inner functions included."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*(names_in(each) for each in inner))


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
        return found if found is not None or _is_installed(text) else importlib.import_module(text)
    except (ImportError, ValueError):
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
            if _is_installed(full):
                found[full] = ("library", version_of(full))
                continue
            module = importlib.import_module(full)
        except (ImportError, ValueError) as error:
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
    except ImportError as error:
        return ("not importable", type(error).__name__)


def _is_installed(module: str) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top in sys.modules or top == PACKAGE:
        return is_library(module if top == PACKAGE else top)
    spec = importlib.util.find_spec(top)
    return spec is not None and is_library(top, spec.origin or next(iter(spec.submodule_search_locations or []), None))  # fmt: skip


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
    """The function's syntax tree, or its instructions where there is no source (typed at a prompt, or edited
    since it was imported)."""
    code = function.__code__
    try:
        if not _is_current(code):
            raise OSError("the file has been edited since")
        # of the code, not of the function: what `functools.wraps` made would be taken for what it wraps
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError, tokenize.TokenError, IndexError):
        return ("code", sys.version_info[:2], _instructions(code))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(node, body[0]):
            del body[0]
    return _syntax(tree)


def _is_current(code: types.CodeType) -> bool:
    """Whether a file that was written after this process began still says what the function does."""
    try:
        written = os.stat(code.co_filename).st_mtime
    except (OSError, ValueError):  # no file: a cell of a notebook, which cannot change
        return True
    if written < _STARTED - 2:  # clocks of file systems are coarse
        return True
    text = Path(code.co_filename).read_bytes()
    return _instructions(code) in _codes_of(text, code.co_filename)


@functools.lru_cache(maxsize=64)
def _codes_of(text: bytes, file: str) -> list[Any]:
    """The instructions of all functions in a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        waiting = [compile(text, file, "exec", dont_inherit=True)]
    found = []
    while waiting:
        code = waiting.pop()
        found.append(_instructions(code))
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
    consts = [
        _instructions(const) if isinstance(const, types.CodeType) else repr(const)
        for const in code.co_consts
    ]
    return (code.co_code, code.co_names, code.co_varnames, consts)
