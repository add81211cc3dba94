"""Fast forms of learners for a kind of device, at most one each; found by the very functions that they stand for.

A kernel plays the episodes of a call with its state in another form: `enter` makes it of the learner's own state and
`leave` goes back, both without loss, so numbers do not depend on where calls are cut, and metrics, reports and
checkpoints know the learner's state only. Integers are those of the learner, reals are equal to rounding.

A learner with another `init`, `act`, `update` or `constants` is another learner, and has no kernel: it runs as it is,
under ``vmap``. `ucbvi_cpu` and `ucbvi_gpu` are the kernels of UCB-VI, `others` those of the other learners.
From outside: `find_kernel` and `Kernel`. May import: `learners`, `xla`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jaxbandit.kernels import others, ucbvi_cpu, ucbvi_gpu
from jaxbandit.kernels.kernel import Kernel
from jaxbandit.learner import Learner

__all__ = ["Kernel", "find_kernel", "known_kernels"]

FUNCTIONS = ("init", "act", "update", "constants")


def find_kernel(learner: Learner, sizes: tuple[int, ...], platform: str) -> Kernel | None:
    """The kernel of a learner at (H, k, A, ...) for "cpu" or "gpu"; None: it runs as it is.

    Example:
        >>> import jaxbandit as jb
        >>> learner = jb.make_learner("ucbvi")
        >>> find_kernel(learner, (15, 2, 5), "cpu") is None, find_kernel(learner, (20, 100, 4), "cpu") is None
        (False, True)
        >>> mine = learner._replace(act=lambda state, key, constants: state.policy)
        >>> find_kernel(mine, (15, 2, 5), "cpu")
    """
    kernel = _kernels().get((*(id(getattr(learner, name)) for name in FUNCTIONS), platform))
    return kernel if kernel is not None and kernel.fits(*sizes[:3]) else None


def known_kernels() -> list[tuple[Learner, str, Kernel]]:
    """All of them: learner, platform, kernel."""
    return [*ucbvi_cpu.KERNELS, *ucbvi_gpu.KERNELS, *others.KERNELS]


@cache
def _kernels() -> dict[tuple[Any, ...], Kernel]:
    """By the identities of functions, which live as long as the process, and platform."""
    return {
        (*(id(getattr(learner, name)) for name in FUNCTIONS), platform): kernel
        for learner, platform, kernel in known_kernels()
    }
