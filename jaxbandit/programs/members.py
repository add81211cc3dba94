"""What an author wrote in a class, an object or a function, beside what Python adds to it.

Python adds other things in every version; a program must be the same in all of them.
"""

from __future__ import annotations

import contextvars
import enum
import sys
import types
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxbandit.programs.libraries import is_library

_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_WRITTEN_BY_PYTHON = {"_fields", "_make", "_replace", "_asdict", "_abc_impl"}
"""Members of named tuples and abstract classes that say nothing of their own."""
GENERATED = {
    "__init__", "__new__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__",
    "__delattr__",
}  # fmt: skip
"""Methods whose text the standard library writes, from the fields of a data class or a named tuple."""
_OF_EVERY_CLASS = {
    "__module__", "__qualname__", "__name__", "__doc__", "__dict__", "__weakref__", "__slots__", "__hash__",
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__orig_bases__", "__parameters__",
    "__static_attributes__", "__firstlineno__", "__type_params__", "__protocol_attrs__",
    "__callable_proto_members_only__", "__non_callable_proto_members__", "__classcell__", "__final__",
    "__getnewargs__",
}  # fmt: skip
_ANNOTATING = ("__annotate__", "__annotate_func__")
PLAIN = {str, bytes, int, float, complex, bool, type(None), type(Ellipsis)}
_OWN = (types.FunctionType, property, classmethod, staticmethod)


def slots_of(base: type) -> tuple[str, ...]:
    """The names of the slots that a class adds.

    Example:
        >>> class Point:
        ...     __slots__ = ("x", "y")
        >>> slots_of(Point), slots_of(int)
        (('x', 'y'), ())
    """
    named = vars(base).get("__slots__", ())
    names = (named,) if isinstance(named, str) else tuple(named)
    owner = base.__name__.lstrip("_")
    # as Python keeps them: two underscores before a name make it the class's own
    return tuple(f"_{owner}{n}" if n[:2] == "__" != n[-2:] else n for n in names)


def is_generated(function: types.FunctionType) -> bool:
    """Whether the standard library wrote the text of a function: methods of named tuples and data classes."""
    if str(function.__module__).startswith("namedtuple_"):
        return True
    return function.__code__.co_qualname.startswith("__create_fn__")  # in `dataclasses`


def says_something(name: str, value: Any) -> bool:
    """Whether a member of a class was written by its author; Python adds some, others in every version.

    Example:
        >>> says_something("scale", 3), says_something("__scale__", 3), says_something("__doc__", "")
        (True, True, False)
    """
    if isinstance(value, _DESCRIPTORS) or type(value).__name__ == "_tuplegetter":
        return False
    inner = getattr(value, "__func__", value)
    if isinstance(inner, types.FunctionType):
        # `collections`, `dataclasses`, `enum` and others add such methods
        usual = name in _WRITTEN_BY_PYTHON or name[:1] == "_" == name[-1:]
        added = usual and is_library(None, inner.__code__.co_filename)
        return not is_generated(inner) and not added and name not in _ANNOTATING
    return name not in _WRITTEN_BY_PYTHON and name not in _OF_EVERY_CLASS


def enum_members(thing: type[enum.Enum]) -> Iterator[tuple[str, Any]]:
    """What an enumeration says: values and attributes of its members, and what else stands in it.

    Example:
        >>> class Size(enum.Enum):
        ...     SMALL = 1
        ...     double = property(lambda self: 2 * self.value)
        >>> [name for name, _ in enum_members(Size)]
        ['SMALL', 'double']
    """
    for name, member in thing.__members__.items():
        more = {k: v for k, v in vars(member).items() if not (k[:1] == "_" == k[-1:])}
        yield name, (member.value, more) if more else member.value
    for name, value in vars(thing).items():
        framed = name[:1] == "_" and name[-1:] == "_"
        written = isinstance(value, _OWN) if framed else not isinstance(value, enum.property)
        if name not in thing.__members__ and written and says_something(name, value):
            yield name, value


def module_of(thing: Any) -> str:
    """The name of the module that a class or a function says it is from; compiled ones may say something else.

    Example:
        >>> module_of(Iterator)
        'collections.abc'
    """
    said = thing.__module__
    return said if isinstance(said, str) else type(thing).__module__


def stands_in_its_module(thing: type) -> bool:
    """Whether a class is found where it says that it is; one that was made by a call may name any module."""
    found: Any = sys.modules.get(module_of(thing))
    if "<locals>" in thing.__qualname__:
        return True
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing or (found is None and thing.__module__ != "types")


def has_more(kind: type) -> bool:
    """Whether objects of a class hold more than attributes: it says itself how they are copied."""
    return any(
        getattr(kind, name, None) is not getattr(object, name, None)
        for name in ("__reduce__", "__reduce_ex__", "__getstate__")
    )


def content(cell: Any) -> Any:
    """What a closure's cell holds; None if it is not filled yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def held(variable: contextvars.ContextVar[Any]) -> Any:
    """The value of a context variable; None if it is not set and has no default."""
    try:
        return variable.get()
    except LookupError:
        return None


def may_be_put(value: Any) -> bool:
    """Whether a value in a library's module may be the user's, or holds what a version does not say.

    Example:
        >>> import math, random
        >>> may_be_put(math.pi), may_be_put(math.sqrt), may_be_put(random.random)
        (True, False, True)
    """
    if isinstance(value, types.ModuleType):
        return is_library(value.__name__, getattr(value, "__file__", None))
    if isinstance(value, types.FunctionType):
        return not is_library(value.__module__, value.__code__.co_filename)
    of = getattr(value, "__self__", None) if callable(value) else None
    bound = isinstance(value, types.MethodType | types.BuiltinFunctionType) and not (
        of is None or isinstance(of, types.ModuleType | type)
    )
    return bound or type(value) in PLAIN or isinstance(value, np.ndarray | jax.Array)
