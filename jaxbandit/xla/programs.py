"""Lowered functions and compiled programs: named by what they compute, made once, kept while they are used, counted.

`lower` traces a function for arguments of given shapes and gives its StableHLO text, without locations: all that it
computes, and nothing of how it is written. Closed-over arrays, globals, defaults, files that were read: whatever reached
the numbers stands in the text as a constant. What a callback does on the host does not, so callbacks are named.

`PROGRAMS` keeps compiled programs by name and shapes. Several threads may compile programs of different names at the same
time; whoever asks for one that is being compiled waits for it. Names hold digests of what functions lower to, no
functions: what is kept here keeps no learner alive.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.xla.compat import settings, settled
from jaxbandit.xla.platforms import Platform, tracing_for

OPAQUE = ("callback", "debug_print", "ffi_call", "infeed", "outfeed", "custom_partitioning")
"""Parts of the names of primitives whose text does not say what they do."""
KEPT = 64
"""Programs that are kept: those of finished sweeps would fill the memory of a long session."""
KEPT_BYTES = 2**26
"""Of their texts together, about twice the size of the arrays in them."""
OPTIONS: dict[str, dict[str, Any]] = {
    "cpu": {
        "xla_cpu_prefer_vector_width": 512,
        "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
    }
}
"""By kind of device, what XLA is asked for. On CPU: vectors as wide as the processor has (XLA alone takes 256 bits), and
one thread per program: a tile is small, there is one for every core, and `platforms.together` can hold no threads."""


class Lowered(NamedTuple):
    """A function as jax compiles it."""

    text: str
    """StableHLO."""
    callbacks: tuple[str, ...]
    """Primitives in it whose text does not say what they do."""
    digest: str
    """SHA-256 of the text and the arrays it is given; like no other if there are callbacks."""
    out: Any
    """Shapes and types of what the function returns."""


def lower(function: Callable, *args: Any) -> Lowered:
    """Traces and lowers ``function`` for arguments like these (arrays or shapes).

    Example:
        >>> import jax.numpy as jnp
        >>> one = jax.ShapeDtypeStruct((), jnp.float32)
        >>> twice, double = lower(lambda x: x + x, one), lower(lambda y: y + y, one)
        >>> twice.digest == double.digest, twice.digest == lower(lambda x: 2 * x, one).digest
        (True, False)
    """

    def f(*args):  # a new function with one name for all: jax's caches know functions by identity
        return function(*args)

    with fresh_traces():
        traced = jax.jit(f).trace(*args)
        text = traced.lower().as_text()
    names = {name for name, _ in _equations(traced.jaxpr)}
    found = sorted(name for name in names if any(part in name for part in OPAQUE))
    out = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), traced.out_info)
    return Lowered(text, tuple(found), digest_of(text, traced.jaxpr, bool(found)), out)


def digest_of(text: str, jaxpr: Any, opaque: bool = False) -> str:
    """SHA-256 of a lowered program; like no other's if it is ``opaque``.

    Some releases of jax hand closed-over arrays to a program as hidden arguments, so their bytes are counted apart.
    """
    total = hashlib.sha256(text.encode())
    for _, arrays in _equations(jaxpr):
        for array in arrays:
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
    if opaque:
        total.update(uuid.uuid4().bytes)
    return total.hexdigest()


def _equations(jaxpr: Any) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The primitives of a jaxpr and of those inside it, each with the arrays that it was given as constants."""
    yield "", [array for const in getattr(jaxpr, "consts", ()) for array in _arrays(const)]
    for eqn in jaxpr.eqns:
        literals = (each.val for each in eqn.invars if hasattr(each, "val"))
        yield eqn.primitive.name, [array for value in literals for array in _arrays(value)]
        for value in eqn.params.values():
            for each in value if isinstance(value, tuple | list) else (value,):
                if hasattr(each, "eqns"):
                    yield from _equations(each)


def _arrays(value: Any) -> list[np.ndarray]:
    """The value as an array with axes; numbers stand in the text."""
    if np.ndim(value) == 0:
        return []
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return [np.asarray(value)]


_CONTEXT: Any = jax.make_user_context(0) if hasattr(jax, "make_user_context") else None
_NUMBERS = itertools.count(1)


def fresh_traces() -> AbstractContextManager[Any]:
    """A context in which jax uses none of its earlier traces.

    jax knows functions by identity. Of one that reads a global which has changed since, as in a notebook, it would take
    the old trace. Releases without user contexts forget all traces instead.
    """
    if _CONTEXT is not None:
        return _CONTEXT(next(_NUMBERS))
    forget_traces()
    return nullcontext()


def forget_traces() -> None:
    """Clears jax's caches, again if another thread, which traces meanwhile, has added to them."""
    for _ in range(1000):
        try:
            return jax.clear_caches()
        except RuntimeError:  # a dictionary changed its size
            time.sleep(0.001)
    return jax.clear_caches()


class Compiled(NamedTuple):
    """A program that can be called."""

    call: Any
    seconds: float
    """That it took now: 0 if it was there."""
    digest: str
    """Of its text."""


@dataclass
class Program:
    """A program that was asked for; whoever holds the lock lowers and compiles it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    digest: str = ""
    """Of its text; empty before it is lowered."""
    bytes: int = 0
    """Of its text."""
    seconds: float = 0.0
    """That lowering and compiling took."""
    lowered: Any = None
    """What is compiled; None before it is lowered, and afterwards."""
    call: Any = None
    """None before it is compiled."""


class Programs:
    """The programs of a process."""

    def __init__(self) -> None:
        """None yet."""
        self.compiled: OrderedDict[Any, Program] = OrderedDict()
        self.count = 0
        """Compilations so far of programs that are worth a message."""
        self.listeners: list[Callable[[str, bool], None]] = []
        """Called with the title of a program when its compilation begins (True) and ends (False)."""
        self._dropped = False
        self._lock = threading.Lock()

    def get(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        platform: Platform,
        title: str | None = None,
        donate: tuple[int, ...] = (),
        compiled: bool = True,
    ) -> Compiled:
        """The compiled ``function`` for arguments of these shapes on that device.

        ``name`` must say what the function does; ``title`` says it to people (None: too small to mention). If it need not
        be ``compiled`` it is only lowered.
        """
        program = self._find(name, args, device, platform)
        with program.lock:
            if program.call is not None or (program.digest and not compiled):
                return Compiled(program.call, 0.0, program.digest)
            notified = [] if title is None else list(self.listeners)
            for listener in notified:
                listener(str(title), True)
            began = time.perf_counter()
            try:
                with settled(), tracing_for(platform), jax.default_device(device):
                    if not program.digest:
                        with fresh_traces():
                            traced = jax.jit(function, donate_argnums=donate).trace(*args)
                            program.lowered = traced.lower()
                        text = program.lowered.as_text()
                        program.digest, program.bytes = digest_of(text, traced.jaxpr), len(text)
                    if compiled:
                        options = OPTIONS.get(device.platform)
                        program.call = program.lowered.compile(compiler_options=options)
                        program.lowered = None
            finally:
                for listener in notified:
                    listener(str(title), False)
            program.seconds += time.perf_counter() - began
            self._drop(title is not None)
            return Compiled(program.call, program.seconds, program.digest)

    def digest(self, *program: Any, donate: tuple[int, ...] = ()) -> str:
        """The digest of the text of the program that `get` gives; it is lowered if need be, and not compiled."""
        name, function, args, device, platform = program
        return self.get(name, function, args, device, platform, None, donate, False).digest

    def _find(self, name: Any, args: tuple, device: Any, platform: Platform) -> Program:
        leaves, tree = jax.tree.flatten(args)
        shapes = tuple((np.shape(x), str(jax.numpy.result_type(x))) for x in leaves)
        config: Any = jax.config
        told = (bool(config.jax_enable_x64), *settings().values())
        identity = (name, shapes, tree, device, platform, *told)
        with self._lock:
            program = self.compiled.setdefault(identity, Program())
            self.compiled.move_to_end(identity)
        return program

    def _drop(self, counted: bool) -> None:
        """Counts a program, and lets go those that were not used for the longest time."""
        with self._lock:
            self.count += counted
            kept = self.compiled
            while len(kept) > 1 and (
                len(kept) > KEPT or sum(each.bytes for each in kept.values()) > KEPT_BYTES
            ):
                kept.popitem(last=False)
                self._dropped = True

    def release_memory(self) -> None:
        """Lets jax forget its traces if programs were let go since the last call.

        For whoever owns the process: all functions that jax compiled in it will be compiled anew at
        their next call.
        """
        with self._lock:
            dropped, self._dropped = self._dropped, False
        if dropped:
            forget_traces()


PROGRAMS = Programs()
release_memory = PROGRAMS.release_memory
