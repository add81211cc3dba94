"""Compiled programs: made once for a name and a shape, kept while they are used, and counted.

Programs of different names may be compiled by several threads at the same time; whoever asks for one that is under
way waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbandit.xla.compat import settings, settled
from jaxbandit.xla.platforms import Platform, tracing_for

KEPT = 64
"""Programs that are kept: those of finished sweeps would fill the memory of a long session."""
OPTIONS: dict[str, dict[str, Any]] = {
    "cpu": {
        "xla_cpu_prefer_vector_width": 512,
        "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
    }
}
"""By kind of device, what XLA is asked for. On CPU: vectors as wide as the processor has (XLA alone takes 256 bits), and
one thread per program: a tile is small, there is one for every core, and `barriers.together` can hold no threads."""


class Programs:
    """The programs of a process."""

    def __init__(self) -> None:
        """None yet."""
        self.compiled: OrderedDict[Any, Any] = OrderedDict()
        self.count = 0
        """Compilations so far of programs that are worth a word."""
        self.listeners: list[Callable[[str, bool], None]] = []
        """Called with the words for a program when its compilation begins (True) and ends (False)."""
        self._dropped = False
        self._followed: dict[Any, str] = {}
        self._lock = threading.Lock()
        self._under_way: dict[Any, threading.Lock] = {}

    def get(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        platform: Platform,
        words: str | None = None,
        donate: tuple[int, ...] = (),
    ) -> tuple[Any, float]:
        """The compiled ``function`` for arguments of these shapes on that device, and the seconds it took now.

        ``name`` must say what the function does; ``words`` say it to people (None: too small to mention).
        """
        leaves, tree = jax.tree.flatten(args)
        shapes = tuple((np.shape(x), str(jax.numpy.result_type(x))) for x in leaves)
        config: Any = jax.config
        identity = (
            name,
            shapes,
            tree,
            device,
            platform,
            bool(config.jax_enable_x64),
            *settings().values(),
        )
        with self._lock:
            turn = self._under_way.setdefault(identity, threading.Lock())
        with turn:
            with self._lock:
                found = self.compiled.get(identity)
                if found is not None:
                    self.compiled.move_to_end(identity)
                    return found, 0.0
            told = [] if words is None else list(self.listeners)
            for listener in told:
                listener(str(words), True)
            began = time.perf_counter()
            try:
                with settled(), tracing_for(platform), jax.default_device(device):
                    lowered = jax.jit(function, donate_argnums=donate).lower(*args)
                    program = lowered.compile(compiler_options=OPTIONS.get(device.platform))
            finally:
                for listener in told:
                    listener(str(words), False)
            seconds = time.perf_counter() - began
            with self._lock:
                self.count += words is not None
                self.compiled[identity] = program
                while len(self.compiled) > KEPT:
                    gone, _ = self.compiled.popitem(last=False)
                    self._under_way.pop(gone, None)
                    self._dropped = True
            return program, seconds

    def follow(self, functions: Any, digest: str) -> None:
        """Forgets all that was compiled if these functions do something else now than at the last call.

        Programs are kept, here and by jax, by the identity of functions; a constant that they name may be another since.
        """
        with self._lock:
            if self._followed.setdefault(functions, digest) == digest:
                return
            self._followed[functions] = digest
            self.compiled.clear()
            self._under_way.clear()
        jax.clear_caches()

    def release_memory(self) -> None:
        """Lets jax forget its traces if programs were let go since the last call.

        For whoever owns the process: all functions that jax compiled in it will be compiled anew at
        their next call.
        """
        with self._lock:
            dropped, self._dropped = self._dropped, False
        if dropped:
            jax.clear_caches()


PROGRAMS = Programs()
release_memory = PROGRAMS.release_memory
