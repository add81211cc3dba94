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
from jaxbandit.sweeps.members import (
    content,
    enum_members,
    has_more,
    is_generated,
    module_of,
    says_something,
    slots_of,
    stands_in_its_module,
)
from jaxbandit.sweeps.members import held as held_by
from jaxbandit.sweeps.sources import (
    PACKAGE,
    imports_in,
    is_library,
    modules_in,
    names_in,
    source_of,
    version_of,
)

_PLAIN = {str, bytes, int, float, complex, bool, type(None), type(Ellipsis)}
_BUILTIN = {tuple, list, dict, set, frozenset, types.MappingProxyType}
_DYNAMIC = {"getattr", "globals", "vars", "eval", "exec", "__import__", "import_module", "__dict__"}
"""A function that names one of these may reach anything in the modules that it names."""
_BY_NAME = {"import_module", "__import__", "modules"}
"""A function that names one of these may reach modules by texts."""


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
    try:
        # by its fields: how a learner is printed is no part of it
        root = walk.describe(thing.rules._asdict() if isinstance(thing, Learner) else thing)
        parts = {name: _hash(value) for name, value in walk.parts.items()}
        parts["the learner"] = _hash(root)
    except RecursionError:  # deeper than anybody can follow
        parts = {"the learner": _unknown()}
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
        self._open: list[int] = []  # containers that are being described

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
            return self._array(thing)
        if id(thing) in self._names:
            return ("part", self._names[id(thing)])
        if isinstance(thing, enum.Enum):
            return ("member", self.describe(type(thing)), thing.name)
        if type(thing) in _BUILTIN:
            return self._container(thing)
        if isinstance(thing, functools.partial):
            return [self.describe(part) for part in (thing.func, thing.args, thing.keywords)]
        if isinstance(thing, types.MethodType):
            return ("method", self.describe(thing.__self__), self.describe(thing.__func__))
        if isinstance(thing, contextvars.ContextVar):
            return ("variable", thing.name, self.describe(held_by(thing)))
        if isinstance(thing, np.ufunc):
            known = getattr(np, thing.__name__, None) is thing
            return ("library", thing.__name__) if known else _unknown()
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

    def _array(self, thing: Any) -> Any:
        array = np.asarray(thing)
        if array.dtype.hasobject:  # its bytes are addresses
            return ("objects", self.describe(array.tolist()))
        bits = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        if isinstance(thing, np.ndarray) and type(thing) is not np.ndarray:  # such as a masked one
            return (bits, self._object(thing))
        return bits

    def _container(self, thing: Any) -> Any:
        if id(thing) in self._open:  # it holds itself
            return ("again", self._open[::-1].index(id(thing)))
        self._open.append(id(thing))
        try:
            return self._items(thing)
        finally:
            self._open.pop()

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
            return ("module", name, version_of(name), self._put_into(module, names or set()))
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

    def _put_into(self, module: types.ModuleType, names: set[str]) -> list[Any]:
        """What a function names in a library's module that may have been put there: numbers, and functions from elsewhere."""
        there = [(name, vars(module)[name]) for name in sorted(names) if name in vars(module)]
        return [
            (name, self.describe(value))
            for name, value in there
            if type(value) in _PLAIN
            or (
                isinstance(value, types.FunctionType)
                and not is_library(value.__module__, value.__code__.co_filename)
            )
        ]

    def _through(self, value: Any, names: set[str] | None) -> Any:
        """A value that a function names; a module among them only as far as its names reach."""
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        return self.describe(value)

    def _part(self, thing: Any, content: Any) -> Any:
        name = f"{module_of(thing)}.{thing.__qualname__}"
        while name in self.parts:
            name += "'"
        self._names[id(thing)] = name
        self._kept.append(thing)
        self.parts[name] = None
        self.parts[name] = content(thing)
        return ("part", name)

    def _function(self, function: types.FunctionType) -> Any:
        closed = [self.describe(content(cell)) for cell in function.__closure__ or ()]
        given = [self.describe(x) for x in (function.__defaults__, function.__kwdefaults__)]
        if is_library(function.__module__, function.__code__.co_filename):
            return ("library", version_of(function.__module__), closed, given)
        if is_generated(function):  # written by Python, from what the class says
            return ("fields", function.__code__.co_varnames, given)
        own = [
            (k, self.describe(v)) for k, v in sorted(vars(function).items()) if k != "__wrapped__"
        ]
        return (source_of(function), closed, given, own, self._named(function))

    def _named(self, function: types.FunctionType) -> list[Any]:
        """The globals that a function names, what it imports, and what it reaches through modules among them."""
        names = names_in(function.__code__)
        here = [n for n in sorted(names) if n in function.__globals__]
        if not names.isdisjoint({"globals", "eval", "exec"}):
            here = sorted(n for n in function.__globals__ if n[:2] != "__")
        found = [(n, function.__globals__[n]) for n in here] + imports_in(function)
        told = [(name, self._through(value, names)) for name, value in found]
        if names.isdisjoint(_BY_NAME) or str(function.__module__).split(".")[0] == PACKAGE:
            return told
        spoken = modules_in(function.__code__)
        return [*told, [self._module(module, None) for module in spoken] or _unknown()]

    def _class(self, thing: type) -> Any:
        module = module_of(thing)
        if is_library(module) and stands_in_its_module(thing):
            return ("library", version_of(module))
        if issubclass(thing, enum.Enum):
            members = dict(enum_members(thing))
        else:
            members = {k: v for k, v in vars(thing).items() if says_something(k, v)}
        described = [(name, self._member(value)) for name, value in sorted(members.items())]
        if dataclasses.is_dataclass(thing):
            for field in dataclasses.fields(thing):
                default = [self.describe(x) for x in (field.default, field.default_factory)]
                described.append((field.name, default))
        bases = [self.describe(base) for base in (type(thing), *thing.__bases__)]
        return ("class", bases, described)

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
        slots = [name for base in type(thing).__mro__ for name in slots_of(base)]
        held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
        held |= getattr(thing, "__dict__", {})
        # `functools.update_wrapper` leaves texts of what is wrapped
        held = {k: v for k, v in held.items() if k[:2] != "__" or k == "__wrapped__"}
        inside: Any = None
        if isinstance(thing, Mapping | tuple | list | set | frozenset):
            inside = (self._items(thing), self.describe(getattr(thing, "default_factory", None)))
        elif isinstance(thing, str | bytes | int | float | complex):
            inside = repr(next(b for b in type(thing).__mro__ if b in _PLAIN)(thing))
        elif not held or has_more(type(thing)):
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
            return _unknown() if " at 0x" in text else text
        listed = [list(x) if hasattr(x, "__next__") else x for x in rest]
        return [self.describe(part) for part in (made, arguments, *listed)]


def _unknown() -> str:
    """Unlike anything else, itself included."""
    return uuid.uuid4().hex
