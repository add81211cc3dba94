"""Follows what a function reaches: helpers, constants, defaults, closures, classes, attributes, modules.

Functions are described by their source text (without comments, white space and docstrings, so the same in every version
of Python), the values that they close over or name by their content, and what belongs to an installed library by its
name and version. A value that cannot be identified makes the program unlike any other, itself included.
"""

from __future__ import annotations

import builtins
import contextvars
import copyreg
import dataclasses
import enum
import functools
import hashlib
import logging
import sys
import types
import uuid
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxbandit.programs.libraries import (
    PACKAGE,
    compiled_file,
    is_library,
    library_function,
    version_of,
)
from jaxbandit.programs.members import (
    GENERATED,
    PLAIN,
    content,
    enum_members,
    has_more,
    is_generated,
    may_be_put,
    module_of,
    says_something,
    slots_of,
    stands_in_its_module,
)
from jaxbandit.programs.members import held as held_by
from jaxbandit.programs.sources import bare_names_in, imports_in, modules_in, names_in, source_of

_BUILTIN = {tuple, list, dict, set, frozenset, types.MappingProxyType}
_VIEWS = {type({}.keys()), type({}.values()), type({}.items())}
_WRAPPERS = {
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    property: ("fget", "fset"),
} | {
    functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
}
"""What stands in a class for a function, and where the function is."""
_DYNAMIC = {"getattr", "globals", "vars", "eval", "exec", "__import__", "import_module", "__dict__"} | {
    "attrgetter", "methodcaller", "getmembers", "__getattribute__",
}  # fmt: skip
"""A function that names one of these may reach anything in the modules that it names."""
_BY_NAME = {"import_module", "__import__", "modules"}
"""A function that names one of these may reach modules by texts."""
_OUTSIDE = {"environ", "environb", "getenv", "read_text", "read_bytes", "loadtxt", "genfromtxt", "fromfile", "memmap"} | {
    "read_csv", "exec_module", "run_path", "run_module",
}  # fmt: skip
"""A function that names one of these, or `open`, reads what is neither in it nor given to it, when it runs."""
_OF_WRAPPED = {*functools.WRAPPER_ASSIGNMENTS, "__annotations__", "__annotate__", "__type_params__"}
"""Texts of what it wraps that `functools.update_wrapper` leaves in an object."""


class Walk:
    """Describes values without memory addresses; functions and classes become named parts."""

    def __init__(self) -> None:
        """Nothing is described yet."""
        self.parts: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no address is used twice
        self._modules: set[Any] = set()
        self._open: list[int] = []  # containers that are being described

    def describe(self, thing: Any) -> Any:  # noqa: PLR0911  (one case per kind of value)
        """The value as plain data whose ``repr`` is the same in every process; parts are filled on the way."""
        if type(thing) in PLAIN:
            return thing
        if isinstance(thing, np.dtype | types.GenericAlias):
            return str(thing)
        if isinstance(thing, types.ModuleType):  # before arrays: jax.numpy has a dtype and a shape
            return self._module(thing, set(), whole=True)
        if isinstance(thing, np.ndarray | np.generic | jax.Array):
            return self._array(thing)
        if id(thing) in self._names:
            return ("part", self._names[id(thing)])
        if isinstance(thing, enum.Enum):
            return ("member", self.describe(type(thing)), thing.name)
        if type(thing) in _BUILTIN or type(thing) in _VIEWS:
            return self._container(thing)
        if type(thing) in (functools.partial, jax.tree_util.Partial):
            inside = (thing.func, thing.args, thing.keywords, vars(thing))
            return ("partial", [self.describe(part) for part in inside])
        if isinstance(thing, types.MethodType):
            return ("method", self.describe(thing.__self__), self.describe(thing.__func__))
        if isinstance(thing, logging.Logger):  # whoever listens changes no number
            return ("logger", thing.name)
        if isinstance(thing, contextvars.ContextVar):
            return ("variable", thing.name, self.describe(held_by(thing)))
        if isinstance(thing, types.BuiltinFunctionType):
            of = getattr(thing, "__self__", None)  # {...}.get has its dictionary
            own = None if isinstance(of, types.ModuleType) else self.describe(of)
            return (*self._global(thing, thing.__name__), own)
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
        if isinstance(thing, jax.Array) and jax.dtypes.issubdtype(thing.dtype, jax.dtypes.prng_key):
            return ("key", str(thing.dtype), self.describe(jax.random.key_data(thing)))
        array = np.asarray(thing)
        # numpy and jax round differently, and a weak type gives way
        kind = (isinstance(thing, jax.Array), getattr(thing, "weak_type", False), repr(array.dtype))
        if array.dtype.hasobject:  # its bytes are addresses
            return ("objects", kind, array.shape, self.describe(array.tolist()))
        bits = (kind, array.shape, hashlib.sha256(array.tobytes()).hexdigest())
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

    def _module(self, module: types.ModuleType, names: set[str], whole: bool = False) -> Any:
        """What is reached through a module by these names; ``whole``: everything in it."""
        name = module.__name__
        whole = whole or not names.isdisjoint(_DYNAMIC)
        key = ("module", name, None if whole else tuple(sorted(names)))
        if key in self._modules:
            return key
        self._modules.add(key)
        if is_library(name, getattr(module, "__file__", None)) or (
            whole and name.split(".")[0] == PACKAGE
        ):
            return ("module", name, version_of(name), self._put_into(module, names))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that a module is about to drop
            wanted = sorted(n for n in vars(module) if n[:2] != "__") if whole else sorted(names)
            reached = [
                (other, getattr(module, other)) for other in wanted if hasattr(module, other)
            ]
        return (name, [(other, self._through(x, names, whole)) for other, x in reached])

    def _put_into(self, module: types.ModuleType, names: set[str]) -> list[Any]:
        """What a function names in a library's module that libraries do not say by their version: what may have been put
        there, and methods of objects, such as the one of numpy's random numbers."""
        there = [(name, vars(module)[name]) for name in sorted(names) if name in vars(module)]
        return [(name, self._through(x, names)) for name, x in there if may_be_put(x)]

    def _through(self, value: Any, names: set[str], whole: bool = False) -> Any:
        """A value that a function names; a module among them only as far as its names reach, or the whole of it."""
        if isinstance(value, types.ModuleType):
            return self._module(value, names, whole)
        return self.describe(value)

    def _global(self, thing: Any, name: str) -> tuple[Any, ...]:
        """What is compiled, by its name; the file that the user compiled it to."""
        module = getattr(thing, "__module__", None)
        return ("library", module, name, compiled_file(module))

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
            return ("library", library_function(function.__code__), closed, given)
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
        bare = bare_names_in(
            function.__code__
        )  # a module that is handed on may be asked for anything
        told = [(name, self._through(value, names, name in bare)) for name, value in found]
        if str(function.__module__).split(".")[0] == PACKAGE:
            return told
        told.append(("builtins", self._put_into(builtins, names - set(here))))
        outside = (names & _OUTSIDE) | ({"open"} & bare - set(here))
        if outside:
            where = f"{module_of(function)}.{function.__qualname__}"
            told.append(self._unknown(f"what {where} reads when it runs ({min(outside)})"))
        if names.isdisjoint(_BY_NAME):
            return told
        spoken = [self._module(each, set(), True) for each in modules_in(function.__code__)]
        return [*told, spoken or self._unknown(f"the module that {function.__qualname__} imports")]

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
                says = (field.default, field.default_factory, field.metadata)
                described.append((field.name, [self.describe(x) for x in says]))
            described.append(("written", sorted(GENERATED & vars(thing).keys())))
        bases = [self.describe(base) for base in (type(thing), *thing.__bases__)]
        return ("class", bases, described, compiled_file(module))

    def _member(self, value: Any) -> Any:
        """A member of a class; properties, class methods and the like by the functions in them."""
        if is_library(type(value).__module__):
            for kind, places in _WRAPPERS.items():
                if isinstance(value, kind):
                    inside = [self.describe(getattr(value, place)) for place in places]
                    return (type(value).__qualname__, inside)
        return self.describe(value)

    def _object(self, thing: Any) -> Any:
        kind = self.describe(type(thing))
        self._names[id(thing)] = f"object {len(self._names)}"
        self._kept.append(thing)
        slots = [name for base in type(thing).__mro__ for name in slots_of(base)]
        held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
        held |= getattr(thing, "__dict__", {})
        held = {k: v for k, v in held.items() if k not in _OF_WRAPPED}
        inside: Any = None
        if isinstance(thing, Mapping | tuple | list | set | frozenset):
            inside = (self._items(thing), self.describe(getattr(thing, "default_factory", None)))
        elif isinstance(thing, str | bytes | int | float | complex):
            inside = repr(next(b for b in type(thing).__mro__ if b in PLAIN)(thing))
        elif not held or has_more(type(thing)):
            inside = self._reduced(thing)
        return (kind, [(k, self.describe(held[k])) for k in sorted(held)], inside)

    def _reduced(self, thing: Any) -> Any:
        """The content of an object without attributes, as it would be copied."""
        if type(thing) is object:
            return ()
        try:
            by_kind = copyreg.dispatch_table.get(type(thing))
            copied = by_kind(thing) if by_kind is not None else thing.__reduce_ex__(2)
        except Exception:
            text = repr(thing)
            if len(text) < 200 and "..." not in text and " at 0x" not in text:
                return text
            # Neither content nor a stable text: nobody can say whether it is the same next time.
            return self._unknown(f"a {type(thing).__module__}.{type(thing).__qualname__}")
        if isinstance(copied, str):  # it is found by its name
            return self._found_by_name(thing, copied)
        made, arguments, *rest = copied
        listed: list[Any] = [list(x) if isinstance(x, Iterator) else x for x in rest]
        return [self.describe(part) for part in (made, arguments, *listed)]

    def _found_by_name(self, thing: Any, name: str) -> Any:
        """Such as numpy's and scipy's functions of numbers; made by others, they may do anything."""
        for module in (getattr(thing, "__module__", None), "numpy", "scipy.special"):
            found: Any = sys.modules.get(module or "")
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is thing:
                return ("library", module, name, version_of(module), compiled_file(module))
        return self._unknown(f"a {type(thing).__module__}.{type(thing).__qualname__}, {name}")

    def _unknown(self, what: str) -> Any:
        """Makes the program unlike any other, itself included."""
        self.parts[f"{what}, which cannot be compared between two runs"] = uuid.uuid4().hex
        return ("unknown", what)
