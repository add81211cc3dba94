"""A learner and its block form: tuples of functions whose arity is checked when they are made.

Arguments are positional, so any names will do. Functions are pure: they read their arguments and nothing else that
changes. They see one lane (seed) at a time; engines vmap them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from jaxbandit.errors import LearnerError
from jaxbandit.tabular import Table
from jaxbandit.types import Array, State

Params = Mapping[str, Array]
"""Hyper-parameters by name."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["num_episodes", "rank", "optimal_policy"],
    meta_fields=["horizon", "width", "num_actions"],
)
@dataclass(frozen=True)
class Problem:
    """Static problem information available to ``constants`` and ``init``.

    Example:
        >>> import jaxbandit as jb
        >>> problem = jb.Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000)
        >>> (problem.horizon, problem.width + 1)          # the shape of a deterministic policy
        (15, 3)
    """

    horizon: int
    """H, the number of stages (static: it may be used in shapes)."""
    width: int
    """k, the number of levels besides level 0 (static)."""
    num_actions: int
    """A (static)."""
    num_episodes: Any
    """T. In ``constants`` a Python int, exact however large; in ``init``, which engines compile, a
    float scalar of the engine's precision."""
    rank: Array | None = None
    """int32 [H, k+1, A], the order of Assumption 3.2: larger is likelier to stay. Only for learners
    with "rank" in ``requires``."""
    optimal_policy: Array | None = None
    """int32 [H, k+1]; only for learners with "optimal_policy" in ``requires`` (the oracle)."""


class Blocks(NamedTuple):
    """Arms to be played one after the other, independent of each other given what is known so far.

    Arm b plays ``episodes[b]`` episodes of the randomised policy ``policy`` with the row of stage
    ``stage`` replaced by ``rows[b]``. Arms of 0 episodes are skipped. A single policy is one arm
    whose row repeats the policy's own.

    Example:
        >>> import jax.numpy as jnp, jaxbandit as jb
        >>> policy = jnp.full((3, 2, 2), 0.5)             # H = 3, k = 1, A = 2
        >>> rows = jnp.eye(2)[:, None].repeat(2, axis=1)  # at stage 2 one arm for each action
        >>> block = jb.Blocks(policy, jnp.int32(1), rows, jnp.asarray([100, 100]))
        >>> block.rows.shape
        (2, 2, 2)
    """

    policy: Array
    """float [H, k+1, A]: action probabilities, shared by all arms."""
    stage: Array
    """int32 []: index 0..H-1 of the stage at which the arms differ."""
    rows: Array
    """float [B, k+1, A]: action probabilities of each arm at that stage."""
    episodes: Array
    """[B]: whole numbers of episodes. Integers are exact on every engine; a float32 is exact to
    2^24."""


class Init(Protocol):
    """The state before the first episode: a tree of arrays whose shapes and dtypes never change."""

    def __call__(self, problem: Problem, constants: Any, key: Array, /) -> State:
        """``problem``: sizes and T; ``constants``: the learner's; ``key``: a key of the lane. Compiled."""


class Act(Protocol):
    """The policy of the next episode."""

    def __call__(self, state: State, key: Array, constants: Any, /) -> Array:
        """Int [H, k+1], or a randomised Markov policy float [H, k+1, A]; ``key``: the episode's."""


class Update(Protocol):
    """The state after an episode."""

    def __call__(self, state: State, policy: Array, feedback: Any, constants: Any, /) -> State:
        """``policy``: what ``act`` returned; ``feedback``: exactly what ``learner.feedback`` names,
        see `jaxbandit.feedback`."""


class Constants(Protocol):
    """What never changes during a run.

    Plain Python on the host, never compiled: once for each instance and parameter setting, in
    float64 and exact integers (`num_episodes` is a Python int), so numpy is at home here. Engines
    round reals to their own precision and refuse whole numbers that do not fit theirs.
    """

    def __call__(self, problem: Problem, params: Params, /) -> Any:
        """A tree of numbers and arrays."""


class NextBlock(Protocol):
    """The arms to play next, at least one of them with some episodes."""

    def __call__(self, state: State, constants: Any, /) -> Blocks:
        """One lane at a time."""


class Absorb(Protocol):
    """The state after all arms of a block."""

    def __call__(self, state: State, episodes: Array, totals: Array, constants: Any, /) -> State:
        """``episodes`` [B]: whole numbers, as integers or reals; ``totals`` float [B]: the sum of
        the total rewards of each arm."""


class Report(Protocol):
    """Diagnostics of a run, for results and plots."""

    def __call__(self, state: State, /) -> dict[str, Array]:
        """Arrays by name, for one lane; called once, after the last episode, with 64-bit types
        available. Names of results (`jaxbandit.learner.RESERVED`) are refused."""


class Check(Protocol):
    """Refuses parameter values that the learner cannot mean."""

    def __call__(self, params: Mapping[str, Any], /) -> None:
        """``params``: all of them, as numbers and numpy arrays of one setting; raises ValueError
        that names the parameter, its value and what is accepted."""


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
    example, and the protocols above for the arguments.
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
    """init(problem, constants, key) -> state, before the first episode."""
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


class Presets(NamedTuple):
    """Named parameter settings of a learner."""

    defaults: Mapping[str, Any]
    """The value of every parameter; nan is "as in the paper"."""
    values: Mapping[str, Mapping[str, Any]]
    """By preset, what differs from the defaults."""


KNOWN_PRESETS: dict[str, tuple[Presets, ...]] = {}
"""By the name of a learner; several, if its variants have other parameters."""


def describe_params(name: str, params: Mapping[str, Any]) -> str:
    """Parameter values in a few words: the nearest preset and what differs from it, else "name value".

    Example:
        >>> describe_params("mine", {"share": np.float32(0.1), "table": np.zeros((2, 3))})
        'share 0.1, table [2, 3]'
    """
    for presets in KNOWN_PRESETS.get(name, ()):
        if set(presets.defaults) == set(params):
            return _nearest(presets, params)
    shown = []
    for key, value in params.items():
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "fiu":
            shown.append(f"{key} {list(array.shape) or value}")
        elif np.isfinite(array):  # nan and inf stand for no value
            shown.append(f"{key} {array.item():.6g}")
    return ", ".join(shown)


def _nearest(presets: Presets, params: Mapping[str, Any]) -> str:
    found: list[tuple[int, list[str]]] = []
    for preset, values in presets.values.items():
        usual = {**presets.defaults, **values}
        other = [
            _shown(key, value, usual[key])
            for key, value in params.items()
            if not _alike(value, usual[key])
        ]
        found.append((len(other), [f"preset {preset}", *other] if values else other))
    return ", ".join(min(found, key=lambda one: one[0])[1])


def _alike(value: Any, usual: Any) -> bool:
    """Whether a value, or every one of a grid's, is the usual one."""
    one, other = np.asarray(value, np.float64), np.asarray(usual, np.float64)
    return bool(np.all((one == other) | (np.isnan(one) & np.isnan(other))))


def _shown(name: str, value: Any, usual: Any) -> str:
    array = np.asarray(value, np.float64)
    if array.ndim > np.ndim(usual):
        return f"{name} of {len(array)} settings"
    if array.ndim:
        return f"{name} of {int(np.sum(array > 0))} phases"
    return f"{name} {'as in the paper' if np.isnan(array) else f'{float(array):.6g}'}"
