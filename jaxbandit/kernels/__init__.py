"""Fast forms of learners for a kind of device, at most one each; found by the very functions that they stand for.

A kernel plays the episodes of a call with its state in another form: `enter` makes it of the learner's own state and
`leave` goes back, both without loss, so numbers do not depend on where calls are cut, and metrics, reports and
checkpoints know the learner's state only. Integers are those of the learner, reals are equal to rounding.

A learner with another `init`, `act`, `update` or `constants` is another learner, and has no kernel: it runs as it is,
under ``vmap``. `ucbvi` has the kernels of UCB-VI, `lanes` those of the other learners.
From outside: `find_kernel`, `kernel_or_own` and `Kernel`. May import: `learners`, `xla`.
"""

from __future__ import annotations

from typing import Any

from jaxbandit.kernels import lanes, ucbvi
from jaxbandit.kernels.lanes import Kernel
from jaxbandit.learner import Learner
from jaxbandit.learners.ucbvi import ucbvi as make_ucbvi
from jaxbandit.learners.ucbvi import ucbvi_doubling

__all__ = ["KERNELS", "Kernel", "find_kernel", "kernel_or_own"]

KERNELS = [*ucbvi.KERNELS, *lanes.KERNELS]
"""All of them: learner, platform, kernel."""


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
    kernel = _BY_FUNCTIONS.get(_functions(learner, platform))
    return kernel if kernel is not None and kernel.fits(*sizes[:3]) else None


def kernel_or_own(
    learner: Learner, sizes: tuple[int, ...], platform: str, num_lanes: int
) -> Kernel:
    """The kernel of a learner, or its own functions under ``vmap``; a single lane as it is.

    UCB-VI's own functions in one lane are arithmetic, look-ups and loops, so a stretch of its episodes is one kernel of a CPU.
    """
    kernel = find_kernel(learner, sizes, platform)
    if kernel is not None:
        return kernel
    if num_lanes > 1:
        return lanes.vmapped(learner)
    return lanes.alone(learner)._replace(one_kernel=_functions(learner, platform) in _ONE_KERNEL)


def _functions(learner: Learner, platform: str) -> tuple[Any, ...]:
    """The identities of its functions, which live as long as the process, and the platform."""
    return (*map(id, (learner.init, learner.act, learner.update, learner.constants)), platform)


_ONE_KERNEL = {
    _functions(learner, "cpu")
    for stationary in (False, True)
    for learner in [
        ucbvi_doubling(stationary=stationary),
        *(
            make_ucbvi(bonus=bonus, monotone=monotone, stationary=stationary)
            for bonus in ("hoeffding", "bernstein")
            for monotone in (False, True)
        ),
    ]
}
_BY_FUNCTIONS = {_functions(learner, platform): kernel for learner, platform, kernel in KERNELS}
