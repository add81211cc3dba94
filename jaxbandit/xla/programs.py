"""Compiled programs: made once for a name and a shape, kept while they are used, and counted.

Programs of different names may be compiled by several threads at the same time; whoever asks for one that is being
compiled waits for it. Names hold digests of what functions lower to (`xla.lowering`), no functions: what is kept here
keeps no learner alive.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.xla.compat import settings, settled
from jaxbandit.xla.lowering import digest_of, forget_traces, fresh_traces
from jaxbandit.xla.platforms import Platform, tracing_for

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
one thread per program: a tile is small, there is one for every core, and `barriers.together` can hold no threads."""


class Compiled(NamedTuple):
    """A program that can be called."""

    call: Any
    seconds: float
    """That it took now: 0 if it was there."""
    digest: str
    """Of its text."""


@dataclass
class Program:
    """A lowered program, compiled or about to be."""

    digest: str
    """Of its text."""
    bytes: int
    """Of its text."""
    lowered: Any
    """What is compiled; None afterwards."""
    compiled: Any = None
    seconds: float = 0.0
    """That lowering took, before it was compiled."""


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
        self._under_way: dict[Any, threading.Lock] = {}

    def get(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        platform: Platform,
        title: str | None = None,
        donate: tuple[int, ...] = (),
    ) -> Compiled:
        """The compiled ``function`` for arguments of these shapes on that device.

        ``name`` must say what the function does; ``title`` says it to people (None: too small to mention).
        """
        identity = _identity(name, args, device, platform)
        with self._turn(identity):
            program = self._find(identity)
            if program is not None and program.compiled is not None:
                return Compiled(program.compiled, 0.0, program.digest)
            notified = [] if title is None else list(self.listeners)
            for listener in notified:
                listener(str(title), True)
            began = time.perf_counter()
            try:
                if program is None:
                    program = _lower(function, args, device, platform, donate)
                with settled(), tracing_for(platform), jax.default_device(device):
                    options = OPTIONS.get(device.platform)
                    program.compiled = program.lowered.compile(compiler_options=options)
            finally:
                for listener in notified:
                    listener(str(title), False)
            program.lowered = None
            seconds = time.perf_counter() - began + program.seconds
            self._keep(identity, program)
            with self._lock:
                self.count += title is not None
            return Compiled(program.compiled, seconds, program.digest)

    def digest(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        platform: Platform,
        donate: tuple[int, ...] = (),
    ) -> str:
        """The digest of the text of the program that `get` gives; it is lowered if need be, and not compiled."""
        identity = _identity(name, args, device, platform)
        with self._turn(identity):
            program = self._find(identity)
            if program is None:
                began = time.perf_counter()
                program = _lower(function, args, device, platform, donate)
                program.seconds = time.perf_counter() - began
                self._keep(identity, program)
            return program.digest

    def _turn(self, identity: Any) -> threading.Lock:
        with self._lock:
            return self._under_way.setdefault(identity, threading.Lock())

    def _find(self, identity: Any) -> Program | None:
        with self._lock:
            found = self.compiled.get(identity)
            if found is not None:
                self.compiled.move_to_end(identity)
            return found

    def _keep(self, identity: Any, program: Program) -> None:
        with self._lock:
            self.compiled[identity] = program
            while len(self.compiled) > 1 and (
                len(self.compiled) > KEPT
                or sum(each.bytes for each in self.compiled.values()) > KEPT_BYTES
            ):
                gone, _ = self.compiled.popitem(last=False)
                self._under_way.pop(gone, None)
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


def _identity(name: Any, args: tuple, device: Any, platform: Platform) -> tuple:
    leaves, tree = jax.tree.flatten(args)
    shapes = tuple((np.shape(x), str(jax.numpy.result_type(x))) for x in leaves)
    config: Any = jax.config
    x64 = bool(config.jax_enable_x64)
    return (name, shapes, tree, device, platform, x64, *settings().values())


def _lower(
    function: Callable, args: tuple, device: Any, platform: Platform, donate: tuple[int, ...]
) -> Program:
    with settled(), tracing_for(platform), jax.default_device(device), fresh_traces():
        traced = jax.jit(function, donate_argnums=donate).trace(*args)
        lowered = traced.lower()
        text = lowered.as_text()
        return Program(digest_of(text, traced.jaxpr), len(text), lowered)


PROGRAMS = Programs()
release_memory = PROGRAMS.release_memory
