"""What a learner *runs*, whatever its parameters: the source of everything that its functions reach.

Two learners that differ in a helper, a constant, a default, a closure, an attribute or a schedule differ here, so that
what one of them left in a checkpoint is never taken for the other's. Functions are identified by their source text
(without comments, white space and docstrings, so the same in every version of Python), the values that they close over or
name by their content, and what belongs to an installed library by its name and version. A value that cannot be
identified makes the program unlike any other, itself included: it is not continued.
"""

from __future__ import annotations

import ast
import contextvars
import functools
import hashlib
import importlib.metadata
import inspect
import sys
import sysconfig
import textwrap
import tokenize
import types
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit.learner import Learner

PACKAGE = __name__.split(".")[0]
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
_MEMBERS = (types.FunctionType, property, staticmethod, classmethod, *_PLAIN)
_INSTALLED = {"site-packages", "dist-packages"}
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)


@dataclass(frozen=True)
class Program:
    """The parts of a program by name, each with a digest of its own content."""

    parts: Mapping[str, str]
    digest: str

    def changes(self, other: Mapping[str, str]) -> list[str]:
        """The parts in which another program's differ, are missing or are new."""
        names = sorted({*self.parts, *other})
        return [name for name in names if self.parts.get(name) != other.get(name)]


def program_of(thing: Any) -> Program:
    """The program of a learner, or of any function.

    Example:
        >>> import jaxbandit as jb
        >>> one, two = jb.make_learner("ucbvi"), jb.make_learner("ucbvi", bonus="bernstein")
        >>> program_of(one) == program_of(jb.make_learner("ucbvi", bonus_scale=0.5))
        True
        >>> program_of(one) == program_of(two)
        False
    """
    walk = _Walk()
    root = walk.describe(thing.rules if isinstance(thing, Learner) else thing)
    parts = {name: _hash(value) for name, value in walk.parts.items()} | {
        "the learner": _hash(root)
    }
    return Program(parts, _hash(sorted(parts.items())))


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).hexdigest()[:16]


class _Walk:
    """Describes values without memory addresses; functions and classes become named parts."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no address is used twice

    def describe(self, thing: Any) -> Any:  # noqa: PLR0911  (one case per kind of value)
        if isinstance(thing, _PLAIN):
            return thing
        if isinstance(thing, np.dtype | types.GenericAlias):
            return str(thing)
        if isinstance(thing, types.ModuleType):  # before arrays: jax.numpy has a dtype and a shape
            return ("module", thing.__name__, _version(thing.__name__))
        if hasattr(thing, "dtype") and hasattr(thing, "shape") and not isinstance(thing, type):
            if jax.dtypes.issubdtype(thing.dtype, jax.dtypes.prng_key):
                return ("key", self.describe(jax.random.key_data(thing)))
            array = np.asarray(thing)
            if array.dtype.hasobject:  # its bytes are addresses
                return ("objects", self.describe(array.tolist()))
            return (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        if id(thing) in self._names:
            return ("part", self._names[id(thing)])
        if isinstance(thing, Mapping):
            return [(self.describe(key), self.describe(value)) for key, value in thing.items()]
        if isinstance(thing, tuple | list):
            return (type(thing).__qualname__, [self.describe(item) for item in thing])
        if isinstance(thing, set | frozenset):
            return sorted((self.describe(item) for item in thing), key=repr)
        if isinstance(thing, functools.partial):
            return [self.describe(part) for part in (thing.func, thing.args, thing.keywords)]
        if isinstance(thing, types.MethodType):
            return ("method", self.describe(thing.__self__), self.describe(thing.__func__))
        if isinstance(thing, contextvars.ContextVar):
            return ("variable", thing.name, self.describe(_held(thing)))
        if isinstance(thing, types.BuiltinFunctionType | np.ufunc):
            return ("library", getattr(thing, "__module__", None), thing.__name__)
        wrapped = getattr(thing, "__wrapped__", None)
        if wrapped is not None and not isinstance(thing, types.FunctionType):
            return ("wrapped", self.describe(wrapped))  # jit, lru_cache
        if isinstance(thing, types.FunctionType):
            return self._part(thing, self._function)
        if isinstance(thing, type):
            return self._part(thing, self._class)
        return self._object(thing)

    def _part(self, thing: Any, content: Any) -> Any:
        name = f"{thing.__module__}.{thing.__qualname__}"
        while name in self.parts:
            name += "'"
        self._names[id(thing)] = name
        self._kept.append(thing)
        self.parts[name] = None
        self.parts[name] = content(thing)
        return ("part", name)

    def _function(self, function: types.FunctionType) -> Any:
        closed = [self.describe(_content(cell)) for cell in function.__closure__ or ()]
        given = [self.describe(x) for x in (function.__defaults__, function.__kwdefaults__)]
        if _is_library(function.__module__, function.__code__.co_filename):
            return ("library", _version(function.__module__), closed, given)
        if str(function.__module__).startswith(
            "namedtuple_"
        ):  # written by Python, without a source
            return ("fields", function.__code__.co_varnames, given)
        return (_source(function), closed, given, self._named(function))

    def _named(self, function: types.FunctionType) -> list[Any]:
        """The globals that a function names, and what it reaches through modules among them."""
        found = []
        names = sorted(_names_in(function.__code__))
        for name in names:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            if isinstance(value, types.ModuleType) and not _is_library(value.__name__, None):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of names that a module is about to drop
                    reached = [
                        (other, getattr(value, other)) for other in names if hasattr(value, other)
                    ]
                found.append((name, [(other, self.describe(x)) for other, x in reached]))
            else:
                found.append((name, self.describe(value)))
        return found

    def _class(self, thing: type) -> Any:
        if _is_library(thing.__module__, None):
            return ("library", _version(thing.__module__))
        members = {
            name: value
            for name, value in vars(thing).items()
            if isinstance(value, _MEMBERS)
            and name not in ("__module__", "__doc__", "__qualname__", "__firstlineno__")
        }
        described = []
        for name, value in sorted(members.items()):
            inner = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
            described.append((name, self.describe(inner)))
        return ("class", [self.describe(base) for base in thing.__bases__], described)

    def _object(self, thing: Any) -> Any:
        kind = self.describe(type(thing))
        self._names[id(thing)] = f"object {len(self._names)}"
        self._kept.append(thing)
        slots = [name for base in type(thing).__mro__ for name in getattr(base, "__slots__", ())]
        held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
        held |= getattr(thing, "__dict__", {})
        if held:
            return (kind, [(name, self.describe(value)) for name, value in sorted(held.items())])
        text = repr(thing)
        # Neither content nor a stable text: nobody can say whether it is the same next time.
        return (kind, uuid.uuid4().hex if " at 0x" in text else text)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _held(variable: contextvars.ContextVar[Any]) -> Any:
    try:
        return variable.get()
    except LookupError:  # not set, and no default
        return None


def _names_in(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*(_names_in(each) for each in inner))


@functools.lru_cache(maxsize=4096)
def _is_library(module: str | None, file: str | None) -> bool:
    """Whether something is installed and so known by its version; this package itself is looked into."""
    top = (module or "").split(".")[0]
    if top == PACKAGE:
        return (module or "").startswith(
            f"{PACKAGE}.xla"
        )  # how programs are compiled, not what they do
    if top in sys.stdlib_module_names:
        return True
    if file is None:
        file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    # The folders of this interpreter's environment, and of those that it builds upon.
    return str(path).startswith(_LIBRARIES) or not _INSTALLED.isdisjoint(path.parts)


@functools.lru_cache(maxsize=1024)
def _version(module: str | None) -> str:
    top = (module or "").split(".")[0]
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return f"python {sys.version_info.major}" if top in sys.stdlib_module_names else "unknown"


def _source(function: types.FunctionType) -> Any:
    """The function's syntax tree, or its instructions where there is no source (typed at a prompt)."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError, tokenize.TokenError):
        return ("code", sys.version_info[:2], _instructions(function.__code__))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(node, body[0]):
            del body[0]
    return _syntax(tree)


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
