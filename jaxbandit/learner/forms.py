"""A learner and its block form, as tuples of functions; `normalised` is the form that engines call."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.learner.protocols import (
    Absorb,
    AbsorbWithConstants,
    Act,
    ActWithConstants,
    Caption,
    Check,
    Constants,
    Init,
    NextBlock,
    NextBlockWithConstants,
    Pad,
    Renewed,
    Report,
    Update,
    UpdateWithConstants,
)
from jaxbandit.types import Array


class BlockForm(NamedTuple):
    """A learner that needs nothing but the sums of its blocks.

    An engine calls ``next_block``, plays the arms, and calls ``absorb`` when all of them are
    complete. Blocks that the end of the run cuts short are never absorbed. See `from_blocks` for an
    example, and `jaxbandit.learner.protocols` for the arguments.
    """

    init: Init
    """init(problem, params) -> state."""
    next_block: NextBlock | NextBlockWithConstants
    """next_block(state) -> `Blocks`."""
    absorb: Absorb | AbsorbWithConstants
    """absorb(state, episodes [B], totals [B]) -> state; totals are the sums of the total rewards of
    each arm."""
    report: Report | None = None
    """As in `Learner`."""
    constants: Constants | None = None
    """As in `Learner`: handed to ``next_block`` and ``absorb`` as their last argument."""
    pad: Pad | None = None
    """As in `Learner`, for runs episode by episode."""


class StraightForm(NamedTuple):
    """The same learner as straight-line code over trailing lanes, for devices on which a branch or a loop asks the host.

    It may keep its state in another form while the episodes of a call are played. Its numbers are those of the
    learner: integers equal, reals to rounding. All functions take the learner's constants. (`Learner.staged` has the same
    functions, for CPUs.)
    """

    enter: Callable
    """enter(state, keys, constants) -> inner, before the first episode of a call, with the keys of that episode."""
    act: Callable
    """act(inner, keys, constants) -> the policy of the next episode."""
    update: Callable
    """update(inner, policy, feedback, constants, live) -> inner after it; as it was where ``live``, a bool [], is false."""
    leave: Callable
    """leave(inner, constants) -> state, after the last episode of a call."""
    due: Callable[[int], int] | None = None
    """due(episodes) -> after how many episodes, more than these, a call must end at the latest: there the learner does
    in ``enter`` what would be a branch in ``act``. Python numbers, on the host. None: calls end where they please."""


FUNCTIONS = ("init", "act", "update", "constants")
"""What a learner's other forms stand for."""


class Learner(NamedTuple):
    """A learner: three pure functions, the feedback they need, and the hyper-parameters.

    Only the first three fields are needed. A complete one, that plays the best policy seen so far
    and, in a share of the episodes, a random one:

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np, jaxbandit as jb
        >>> from typing import Any, NamedTuple
        >>> class Best(NamedTuple):                    # what is carried from episode to episode
        ...     policy: Any                            # int32 [H, k+1]
        ...     total: Any                             # float32 []: the best total reward so far
        >>> def constants(problem, params):            # what never changes: plain numpy, run once
        ...     return {"share": params["share"], "num_actions": problem.num_actions}
        >>> def init(problem, params):
        ...     states = (problem.horizon, problem.width + 1)
        ...     return Best(jnp.zeros(states, jnp.int32), jnp.float32(-1))
        >>> def act(state, key, constants):            # the policy of the next episode
        ...     coin, draw = jax.random.split(key)
        ...     drawn = jax.random.randint(draw, state.policy.shape, 0, constants["num_actions"])
        ...     lucky = jax.random.uniform(coin) < constants["share"]
        ...     return jnp.where(lucky, drawn, state.policy)
        >>> def update(state, policy, feedback, constants):    # bandit feedback: the total reward
        ...     better = feedback.total > state.total
        ...     kept = jnp.where(better, policy, state.policy)
        ...     return Best(kept, jnp.maximum(feedback.total, state.total))
        >>> def best_so_far(share=0.1):
        ...     params = {"share": np.float32(share)}  # a leaf: a sweep over it compiles once
        ...     return jb.Learner(
        ...         init, act, update, params=params, name="best-so-far", constants=constants
        ...     )
        >>> best_so_far()
        Learner('best-so-far', bandit, share 0.1)
        >>> _ = jb.testing.check_learner(best_so_far())
    """

    init: Init
    """init(problem, params) -> state, before the first episode. `jaxbandit.learner.protocols` has the
    arguments of every function."""
    act: Act | ActWithConstants
    """act(state, key) -> the policy of the next episode, int [H, k+1] or float [H, k+1, A]."""
    update: Update | UpdateWithConstants
    """update(state, policy, feedback) -> the state after it."""
    feedback: str = "bandit"
    """"bandit", "trajectory", "semi-bandit" or another kind of `jaxbandit.feedback`."""
    params: Mapping[str, Array] = {}
    """Hyper-parameters by name, as array leaves."""
    name: str = "learner"
    needs: tuple[str, ...] = ()
    """Fields of `Problem` beyond the sizes: "rank", "optimal_policy"."""
    blocks: BlockForm | None = None
    """The block form, if there is one."""
    lanes_last: bool = False
    """True if act and update accept arrays with trailing lane axes (seeds side by side); else
    engines vmap them."""
    renewed: Renewed | None = None
    """renewed(state) -> bool: whether act's policy may differ from the last episode's. Saves evaluations of block
    learners, whose adapter keeps it (`from_blocks`); engines believe nobody else, for a wrong answer is a wrong regret."""
    report: Report | None = None
    """report(state) -> diagnostics by name, for results and plots."""
    constants: Constants | None = None
    """constants(problem, params) -> a tree of numbers and arrays that never changes, handed to
    ``act`` and ``update`` as their last argument. Without it they take none. Run once, on the host,
    in float64 and exact integers. What is constant need not be carried, saved or copied as
    state."""
    check: Check | None = None
    """check(params) raises ValueError, naming the parameter, for values that the learner cannot
    mean. Constructors, `grid` and sweeps call it, on plain numbers and numpy arrays, before
    anything runs."""
    caption: Caption | None = None
    """caption(params) -> a few words for the repr (the preset, what differs from it); by default
    the scalar parameters."""
    straight: StraightForm | None = None
    """How GPUs run a learner with ``lanes_last``, where that differs."""
    staged: StraightForm | None = None
    """How CPUs run it, where that differs: with its state in another form while the episodes of a call are played. Loops
    are welcome there, and ``live`` is None: every turn counts."""
    pad: Pad | None = None
    """pad(state, constants) -> state, if the learner may run in larger sizes than those of the MDP, so
    that a GPU runs several sizes at once; `with_zeros` where zeros will do. Then stages beyond H
    are spent at level 0 with rewards of 0, levels beyond k are never visited, and neither may
    change what is played at the MDP's own states. None: it runs in the MDP's own sizes only."""
    of: tuple[Any, ...] | None = None
    """The functions that ``blocks``, ``renewed``, ``straight``, ``staged`` and ``pad`` were written for, see `bound`."""

    @property
    def rules(self) -> Learner:
        """The program alone, without parameters and what is said of them: hashable, and equal for
        all parameter values.

        What speaks for functions that have been replaced since (``learner._replace(act=...)``) is left out: it would
        run, pad or spare the evaluation of a learner that is not there any more.
        """
        alone = self._replace(params=(), check=None, caption=None, of=None)  # type: ignore[arg-type]
        if self.blocks is None:
            alone = alone._replace(renewed=None)
        return (
            alone._replace(renewed=None, straight=None, staged=None, pad=None)
            if self.replaced
            else alone
        )

    @property
    def replaced(self) -> list[str]:
        """The names of the functions that are others than those of ``of``."""
        if self.of is None:
            return []
        pairs = zip(FUNCTIONS, self.of, strict=True)
        return [name for name, function in pairs if getattr(self, name) is not function]

    def __repr__(self) -> str:
        """One line: name, feedback, and the parameters in a few words."""
        words = self._words()
        return f"Learner({self.name!r}, {self.feedback}{words and f', {words}'})"

    def _words(self) -> str:
        """The parameters in a few words; none in `rules`, which has no parameters."""
        if not isinstance(self.params, Mapping) or not self.params:
            return ""
        return (self.caption or _listed)(self.params)

    def _repr_html_(self) -> str:
        """For notebooks: a row for each property and parameter."""
        rows = {"feedback": self.feedback, "told besides the sizes and T": ", ".join(self.needs)}
        rows["engines"] = "episodes" if self.blocks is None else "blocks, episodes"
        rows["parameters"] = self._words()
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(str(value)) or '&ndash;'}</td></tr>"
            for name, value in rows.items()
        )
        title = f"Learner {html.escape(repr(self.name))}"
        return f"<table><caption style='text-align:left'>{title}</caption>{cells}</table>"


def _listed(params: Mapping[str, Any]) -> str:
    """Parameters as "name value", arrays as "name [shape]"; nan and inf stand for no value."""
    words = []
    for name, value in params.items():
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "fiu":
            words.append(f"{name} {list(array.shape) or value}")
        elif np.isfinite(array):
            words.append(f"{name} {array.item():.6g}")
    return ", ".join(words)


def bound(learner: Learner) -> Learner:
    """The learner with a note of the functions that its other forms (block form, straight-line form, padding) stand for.

    Example:
        >>> import jaxbandit as jb
        >>> mine = jb.make_learner("ucbvi")._replace(act=lambda state, key, constants: state.policy)
        >>> mine.replaced, mine.rules.straight
        (['act'], None)
    """
    if learner.of is not None:
        return learner
    return learner._replace(of=tuple(getattr(learner, name) for name in FUNCTIONS))


def with_zeros(state: Any, constants: Any) -> Any:
    """The ``pad`` of a learner whose arrays mean nothing where they are 0: the state as it is."""
    del constants
    return state


@cache
def normalised(rules: Learner | BlockForm) -> Any:
    """The same functions, all taking constants as their last argument: the only form that engines
    call.

    Made once per program, so that equal learners share compilations.
    """
    if rules.constants is not None:
        return rules

    def without(function):
        return lambda *arguments: function(*arguments[:-1])

    names = ("act", "update") if isinstance(rules, Learner) else ("next_block", "absorb")
    wrapped = {name: without(getattr(rules, name)) for name in names}
    return rules._replace(constants=lambda problem, params: (), **wrapped)
