"""A learner and its block form: tuples of functions whose arity is checked when they are made."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from jaxbandit.errors import LearnerError
from jaxbandit.learner.presets import describe_params
from jaxbandit.learner.protocols import (
    Absorb,
    Act,
    Check,
    Constants,
    Init,
    NextBlock,
    Report,
    Update,
)
from jaxbandit.tabular import Table
from jaxbandit.types import Array

SIGNATURES = {
    "init": "problem, constants, key",
    "act": "state, key, constants",
    "update": "state, policy, feedback, constants",
    "next_block": "state, constants",
    "absorb": "state, episodes, totals, constants",
    "report": "state",
    "constants": "problem, params",
    "check": "params",
}
"""The arguments of every function of a learner and of a block form; all are positional."""
T = TypeVar("T")


def check_signature(owner: str, field: str, function: Any) -> None:
    """Raises LearnerError unless the function takes the arguments of its field.

    What has no signature that Python can read is not refused.

    Example:
        >>> check_signature("learner 'mine'", "act", lambda state, key: 0)
        Traceback (most recent call last):
        ...
        jaxbandit.errors.LearnerError: learner 'mine': act takes 2 arguments; accepted: act(state, key, constants)
    """
    wanted = SIGNATURES[field]
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(*wanted.split(", "))
    except TypeError:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        count = sum(parameter.kind in kinds for parameter in signature.parameters.values())
        seen = f"{count} argument{'' if count == 1 else 's'}"
        if count == len(wanted.split(", ")):
            seen = str(signature)
        raise LearnerError(f"{owner}: {field} takes {seen}; accepted: {field}({wanted})") from None


def _signature(function: Any) -> inspect.Signature | None:
    """That of the outermost function, which is the one that is called; of what it wraps where that cannot be read."""
    for follow in (False, True) if callable(function) else ():
        try:
            return inspect.signature(function, follow_wrapped=follow)
        except (TypeError, ValueError):
            continue
    return None


def checked_signatures(form: type[T]) -> type[T]:
    """A class of named tuples that checks its functions however it is made: by a call, ``_make`` or ``_replace``."""
    new: Any = form.__new__

    def checked(made: Any) -> Any:
        name = getattr(made, "name", None)
        for field in form._fields:  # type: ignore[attr-defined]
            if field in SIGNATURES:
                owner = "block form" if name is None else f"learner {name!r}"
                check_signature(owner, field, getattr(made, field))
        return made

    @wraps(new)
    def made_by_call(cls, *args, **kwargs):
        return checked(new(cls, *args, **kwargs))

    form.__new__ = made_by_call  # type: ignore[method-assign]
    form._make = classmethod(lambda cls, values: checked(tuple.__new__(cls, values)))  # type: ignore[attr-defined]
    return form


@checked_signatures
class BlockForm(NamedTuple):
    """A learner that needs nothing but the sums of its blocks.

    An engine calls ``next_block``, plays the arms, and calls ``absorb`` when all of them are
    complete. Blocks that the end of the run cuts short are never absorbed. See `from_blocks` for an
    example, and `jaxbandit.learner.protocols` for the arguments.
    """

    init: Init
    """init(problem, constants, key) -> state."""
    next_block: NextBlock
    """next_block(state, constants) -> `Blocks`."""
    absorb: Absorb
    """absorb(state, episodes [B], totals [B], constants) -> state; totals are the sums of the total
    rewards of each arm."""
    report: Report | None = None
    """As in `Learner`."""
    constants: Constants | None = None
    """As in `Learner`."""


@checked_signatures
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
        >>> def init(problem, constants, key):
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
    """init(problem, constants, key) -> state, before the first episode. `jaxbandit.learner.protocols`
    has the arguments of every function."""
    act: Act
    """act(state, key, constants) -> the policy of the next episode, int [H, k+1] or float [H, k+1, A]."""
    update: Update
    """update(state, policy, feedback, constants) -> the state after it."""
    feedback: str = "bandit"
    """"bandit", "trajectory", "semi-bandit" or another kind of `jaxbandit.feedback`."""
    params: Mapping[str, Array] = {}
    """Hyper-parameters by name, as array leaves."""
    name: str = "learner"
    requires: tuple[str, ...] = ()
    """Fields of `Problem` beyond the sizes: "rank", "optimal_policy"."""
    blocks: BlockForm | None = None
    """The block form, if there is one."""
    report: Report | None = None
    """report(state) -> diagnostics by name, for results and plots."""
    constants: Constants | None = None
    """constants(problem, params) -> a tree of numbers and arrays that never changes, handed to ``init``,
    ``act`` and ``update``. Without it the constants are ``params``, name -> array. Run once, on the
    host, in float64 and exact integers. Constants need not be carried, saved or copied as state."""
    check: Check | None = None
    """check(params) raises ValueError, naming the parameter, for values that the learner cannot
    mean. Constructors, `grid` and sweeps call it, on plain numbers and numpy arrays, before
    anything runs."""

    @property
    def rules(self) -> Learner:
        """The program alone, without parameters and what is said of them: hashable, and equal for
        all parameter values."""
        return self._replace(params=(), check=None)  # type: ignore[arg-type]

    @property
    def needs(self) -> tuple[str, ...]:
        """The old name of ``requires``."""
        warnings.warn("Learner.needs is now Learner.requires", DeprecationWarning, stacklevel=2)
        return self.requires

    def __repr__(self) -> str:
        """One line: name, feedback, and the parameters in a few words."""
        words = self._words()
        return f"Learner({self.name!r}, {self.feedback}{words and f', {words}'})"

    def _words(self) -> str:
        """The parameters in a few words; none in `rules`, which has no parameters."""
        if not isinstance(self.params, Mapping) or not self.params:
            return ""
        return describe_params(self.name, self.params)

    def _repr_html_(self) -> str:
        """For notebooks: a row for each property and parameter."""
        rows = {"feedback": self.feedback, "requires": ", ".join(self.requires)}
        rows["engines"] = "episodes" if self.blocks is None else "blocks, episodes"
        rows["parameters"] = self._words()
        cells = [(name, str(value) or "\N{EN DASH}") for name, value in rows.items()]
        return Table(("property", "value"), cells, title=f"Learner {self.name!r}").to("html")
