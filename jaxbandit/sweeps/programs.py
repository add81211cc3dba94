"""What a learner *runs*, whatever its parameters: the source of everything that its functions reach.

Two learners that differ in a helper, a constant, a default, a closure, an attribute or a schedule differ here, so that
what one of them left in a checkpoint is never taken for the other's. Functions are identified by their source text
(without comments, white space and docstrings, so the same in every version of Python), the values that they close over or
name by their content, and what belongs to an installed library by its name and version. A value that cannot be
identified makes the program unlike any other, itself included: it is not continued.
"""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import functools
import hashlib
import types
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit.learner import Learner
from jaxbandit.sweeps.sources import (
    PACKAGE,
    imports_in,
    is_library,
    names_in,
    source_of,
    version_of,
)

_PLAIN = {str, bytes, int, float, complex, bool, type(None), type(Ellipsis)}
_BUILTIN = {tuple, list, dict, set, frozenset, types.MappingProxyType}
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_DYNAMIC = {"getattr", "globals", "vars", "eval", "exec", "__import__", "import_module", "__dict__"}
"""A function that names one of these may reach anything in the modules that it names."""
_WRITTEN_BY_PYTHON = {"_fields", "_make", "_replace", "_asdict", "_abc_impl"}
"""Members of named tuples and abstract classes that say nothing of their own."""


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
    # by its fields: how a learner is printed is no part of it
    root = walk.describe(thing.rules._asdict() if isinstance(thing, Learner) else thing)
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
        self._modules: set[Any] = set()

    def describe(self, thing: Any) -> Any:  # noqa: PLR0911  (one case per kind of value)
        if type(thing) in _PLAIN:
            return thing
        if isinstance(thing, np.dtype | types.GenericAlias):
            return str(thing)
        if isinstance(thing, types.ModuleType):  # before arrays: jax.numpy has a dtype and a shape
            return self._module(thing, None)
        if isinstance(thing, np.ndarray | np.generic | jax.Array):
            if isinstance(thing, jax.Array) and jax.dtypes.issubdtype(
                thing.dtype, jax.dtypes.prng_key
            ):
                return ("key", self.describe(jax.random.key_data(thing)))
            array = np.asarray(thing)
            if array.dtype.hasobject:  # its bytes are addresses
                return ("objects", self.describe(array.tolist()))
            return (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        if id(thing) in self._names:
            return ("part", self._names[id(thing)])
        if isinstance(thing, enum.Enum):
            return ("member", self.describe(type(thing)), thing.name)
        if type(thing) in _BUILTIN:
            return self._items(thing)
        if isinstance(thing, functools.partial):
            return [self.describe(part) for part in (thing.func, thing.args, thing.keywords)]
        if isinstance(thing, types.MethodType):
            return ("method", self.describe(thing.__self__), self.describe(thing.__func__))
        if isinstance(thing, contextvars.ContextVar):
            return ("variable", thing.name, self.describe(_held(thing)))
        if isinstance(thing, np.ufunc):
            return ("library", thing.__name__)
        if isinstance(thing, types.BuiltinFunctionType):
            of = getattr(thing, "__self__", None)  # {...}.get has its dictionary
            own = None if isinstance(of, types.ModuleType) else self.describe(of)
            return ("library", thing.__module__, thing.__name__, own)
        if isinstance(thing, types.FunctionType):
            return self._part(thing, self._function)
        if isinstance(thing, type):
            return self._part(thing, self._class)
        if type(thing).__module__.split(".")[0] in ("jaxlib", "functools"):  # jit, lru_cache
            wrapped = getattr(thing, "__wrapped__", None)
            if wrapped is not None:
                return ("wrapped", self.describe(wrapped))
        return self._object(thing)

    def _items(self, thing: Any) -> Any:
        """What a container holds."""
        if isinstance(thing, Mapping):
            return [(self.describe(key), self.describe(value)) for key, value in thing.items()]
        if isinstance(thing, set | frozenset):
            return sorted((self.describe(item) for item in thing), key=repr)
        return (type(thing).__qualname__, [self.describe(item) for item in thing])

    def _module(self, module: types.ModuleType, names: set[str] | None) -> Any:
        """What is reached through a module by these names; by None, everything in it."""
        name = module.__name__
        whole = names is None or not names.isdisjoint(_DYNAMIC)
        if is_library(name, getattr(module, "__file__", None)) or (
            whole and name.split(".")[0] == PACKAGE
        ):
            return ("module", name, version_of(name))
        key = ("module", name, None if whole else tuple(sorted(names or ())))
        if key in self._modules:
            return key
        self._modules.add(key)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that a module is about to drop
            wanted = (
                sorted(n for n in vars(module) if n[:2] != "__") if whole else sorted(names or ())
            )
            reached = [
                (other, getattr(module, other)) for other in wanted if hasattr(module, other)
            ]
        return (name, [(other, self._through(x, names)) for other, x in reached])

    def _through(self, value: Any, names: set[str] | None) -> Any:
        """A value that a function names; a module among them only as far as its names reach."""
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        return self.describe(value)

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
        if is_library(function.__module__, function.__code__.co_filename):
            return ("library", version_of(function.__module__), closed, given)
        if _is_generated(function):  # written by Python, from what the class says
            return ("fields", function.__code__.co_varnames, given)
        own = [(k, self.describe(v)) for k, v in sorted(vars(function).items()) if k[:2] != "__"]
        return (source_of(function), closed, given, own, self._named(function))

    def _named(self, function: types.FunctionType) -> list[Any]:
        """The globals that a function names, what it imports, and what it reaches through modules among them."""
        names = names_in(function.__code__)
        here = [n for n in sorted(names) if n in function.__globals__]
        if not names.isdisjoint({"globals", "eval", "exec"}):
            here = sorted(n for n in function.__globals__ if n[:2] != "__")
        found = [(n, function.__globals__[n]) for n in here] + imports_in(function)
        return [(name, self._through(value, names)) for name, value in found]

    def _class(self, thing: type) -> Any:
        if is_library(thing.__module__):
            return ("library", version_of(thing.__module__))
        if issubclass(thing, enum.Enum):
            members = {name: each.value for name, each in thing.__members__.items()}
            members |= {k: v for k, v in vars(thing).items() if isinstance(v, types.FunctionType)}
        else:
            members = {k: v for k, v in vars(thing).items() if _says_something(k, v)}
        described = [(name, self._member(value)) for name, value in sorted(members.items())]
        if dataclasses.is_dataclass(thing):
            for field in dataclasses.fields(thing):
                default = [self.describe(x) for x in (field.default, field.default_factory)]
                described.append((field.name, default))
        return ("class", [self.describe(base) for base in thing.__bases__], described)

    def _member(self, value: Any) -> Any:
        """A member of a class; properties, class methods and the like by the functions in them."""
        for name in ("fget", "__func__", "func"):
            inner = getattr(value, name, None)
            if inner is not None and is_library(type(value).__module__):
                more = [getattr(value, each, None) for each in ("args", "keywords")]
                return [self.describe(part) for part in (inner, *more)]
        return self.describe(value)

    def _object(self, thing: Any) -> Any:
        kind = self.describe(type(thing))
        self._names[id(thing)] = f"object {len(self._names)}"
        self._kept.append(thing)
        slots = [name for base in type(thing).__mro__ for name in _slots(base)]
        held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
        held |= getattr(thing, "__dict__", {})
        # `functools.update_wrapper` leaves texts of what is wrapped
        held = {k: v for k, v in held.items() if k[:2] != "__" or k == "__wrapped__"}
        inside: Any = None
        if isinstance(thing, Mapping | tuple | list | set | frozenset):
            inside = self._items(thing)
        elif isinstance(thing, str | bytes | int | float | complex):
            inside = repr(next(b for b in type(thing).__mro__ if b in _PLAIN)(thing))
        elif not held:
            inside = self._reduced(thing)
        return (kind, [(k, self.describe(held[k])) for k in sorted(held)], inside)

    def _reduced(self, thing: Any) -> Any:
        """The content of an object without attributes, as it would be copied."""
        if type(thing) is object:
            return ()
        try:
            made, arguments, *rest = thing.__reduce_ex__(2)
        except Exception:
            text = repr(thing)
            # Neither content nor a stable text: nobody can say whether it is the same next time.
            return uuid.uuid4().hex if " at 0x" in text else text
        listed = [list(x) if hasattr(x, "__next__") else x for x in rest]
        return [self.describe(part) for part in (made, arguments, *listed)]


def _slots(base: type) -> tuple[str, ...]:
    named = vars(base).get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _is_generated(function: types.FunctionType) -> bool:
    """Whether the standard library wrote the text of a function: methods of named tuples and data classes."""
    module = str(function.__module__)
    return module.startswith("namedtuple_") or function.__code__.co_filename == "<string>"


def _says_something(name: str, value: Any) -> bool:
    """Whether a member of a class was written by its author; Python adds some, others in every version."""
    if isinstance(value, _DESCRIPTORS) or type(value).__name__ == "_tuplegetter":
        return False
    inner = getattr(value, "__func__", value)
    if isinstance(inner, types.FunctionType):
        written = not _is_generated(inner) and not is_library(None, inner.__code__.co_filename)
        return written and name != "__annotate__"
    return name not in _WRITTEN_BY_PYTHON and name[:2] != "__"


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
