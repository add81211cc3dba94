"""The contract: a learner is a NamedTuple of pure functions.

    constants(problem, params)                 -> tree       what never changes during a run
    init(problem, constants, key)              -> state      before the first episode
    act(state, key, constants)                 -> policy     int [H, k+1], or float [H, k+1, A]
    update(state, policy, feedback, constants) -> state      exactly the feedback that ``feedback`` names

The state is a tree of arrays. Hyper-parameters are array leaves in ``params``, so a sweep over them
is a ``vmap`` and compiles once; whatever changes the *program* (a variant, a schedule's length) is
fixed when the learner is made. A learner is made without the MDP: an engine hands it the
`Problem`, which holds the sizes, the number of episodes and, only for a learner that asks for it in
``requires``, the known order of the actions. What never changes during a run is not state: it comes
from ``constants``, which is optional; without it the constants are the parameters. A function with
another number of arguments is refused when the learner is made.

Arguments are positional, so any names will do. Functions are pure: they read their arguments and nothing else that
changes. They see one lane (seed) at a time; engines vmap them.

Learners that only ever play a fixed randomised policy n times and look at the sum are written in
*block form* (`BlockForm`) and turned into episodic ones by `from_blocks`; the block engine runs
them without simulating episodes. Engines and sweeps refuse what breaks the contract
(`check_contract`, `check_report`), and `jaxbandit.testing.check_learner` tries it out.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import printable
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import FEEDBACKS, Trajectory, feedback_kind, observe
from jaxbandit.tabular import Table
from jaxbandit.types import Array, State
from jaxbandit.xla.compat import x64

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
    re.sub("(?<=[a-z])(?=[A-Z])", "_", protocol.__name__).lower(): ", ".join(
        list(inspect.signature(protocol.__call__).parameters)[1:]
    )
    for protocol in (Init, Act, Update, NextBlock, Absorb, Report, Constants, Check)
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
    wanted, signature = SIGNATURES[field], None
    for follow in (True, False):  # the outermost function is the one that is called
        with suppress(TypeError, ValueError):
            signature = inspect.signature(function, follow_wrapped=follow)
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


def checked_signatures(form: type[T]) -> type[T]:
    """A class of named tuples that checks its functions however it is made: by a call, ``_make`` or ``_replace``."""
    new: Any = form.__new__

    def checked(made: Any) -> Any:
        owner = f"learner {made.name!r}" if hasattr(made, "name") else "block form"
        for field, value in made._asdict().items():
            if field in SIGNATURES:
                check_signature(owner, field, value)
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
        return describe_params(self.name, self.params if isinstance(self.params, Mapping) else {})

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
        shown = (_difference(key, value, usual[key]) for key, value in params.items())
        other = [words for words in shown if words]
        found.append((len(other), [f"preset {preset}", *other] if values else other))
    return ", ".join(min(found, key=lambda one: one[0])[1])


def _difference(name: str, value: Any, usual: Any) -> str:
    """A value in a few words; none if it, or every one of a grid's, is the usual one."""
    one, other = np.asarray(value, np.float64), np.asarray(usual, np.float64)
    if np.isclose(one, other, rtol=0, atol=0, equal_nan=True).all():
        return ""
    if one.ndim > other.ndim:
        return f"{name} of {len(one)} settings"
    if one.ndim:
        return f"{name} of {int(np.sum(one > 0))} phases"
    return f"{name} {'as in the paper' if np.isnan(one) else f'{float(one):.6g}'}"


# What of a learner is refused before it runs: declarations and reports that cannot be meant.

REQUIRES = ("rank", "optimal_policy")
"""What a learner may ask for beyond the sizes and T."""
COORDINATES = (
    "learner", "instance", "parameter", "seed", "episode", "phase", "stage", "level", "family",
    "action", "outcome",
)  # fmt: skip
"""Names of a result's axes."""
RESERVED = (
    *COORDINATES, "regret", "final_gap", "final_policy", "compile_seconds", "run_seconds",
    "episodes_per_second", "optimal_value", "optimal_policy", "mdp_prob", "mdp_reward", "mdp_next_level",
    "mdp_rank", "mdp_start", "action_name", "level_name", "reward_scale", "reward_unit", "reward_offset",
)  # fmt: skip
"""Names that a result has anyway; a learner's report cannot use them."""
REAL = (jnp.floating, jnp.integer, jnp.bool_)
"""Kinds of numbers that a result has; complex ones would lose half of themselves."""
PHASED = {"phase_end": 1, "active_actions": 3}
"""Reports that results know, with their number of axes: [phase] and [phase, stage, level]."""
TAKEN = (*RESERVED, *PHASED)
"""Names that no parameter has: it becomes a coordinate where it varies."""


def check_contract(learner: Learner) -> Learner:
    """Returns the learner if what it declares can be meant, else raises ValueError or TypeError.

    Checked without running anything: functions can be called, the feedback and what is required is known,
    parameters are numbers. Engines and sweeps call this for every learner they get.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import check_contract
        >>> check_contract(jb.make_learner("uniform")._replace(requires=("ranks",)))
        Traceback (most recent call last):
        ...
        ValueError: learner 'uniform': requires: 'ranks'; accepted: rank, optimal_policy
    """
    if not isinstance(learner, Learner):
        raise TypeError(f"learner: {learner!r}; accepted: a Learner (make_learner makes one)")
    printable("learner", learner.name)
    for what, value, accepted in _objections(learner):
        raise _refusal(learner, f"{what}: {value!r}", accepted)
    return learner


def _refusal(owner: Any, what: str, accepted: str) -> ValueError:
    """Of a learner, or of a block form, which has no name."""
    name = getattr(owner, "name", "in block form")
    return ValueError(f"learner {name!r}: {what}; accepted: {accepted}")


def _objections(learner: Learner) -> Iterator[tuple[str, Any, str]]:
    """What is declared, its value, and what is accepted instead; later ones hold if there is none before."""
    try:
        kind = feedback_kind(learner.feedback)
    except ValueError as error:
        yield "feedback", learner.feedback, str(error).partition("accepted: ")[2]
    if not isinstance(learner.requires, tuple | list):
        yield "requires", learner.requires, f"a tuple of {', '.join(REQUIRES)}"
    for field in learner.requires:
        if not isinstance(field, str) or field not in REQUIRES:
            yield "requires", field, ", ".join(REQUIRES)
    params, none = learner.params, isinstance(learner.params, tuple) and not learner.params
    if not isinstance(params, Mapping) and not none:
        yield "params", params, "a dictionary, name -> number or array"
    for name, value in dict(params).items():
        if not isinstance(name, str) or name in TAKEN:
            yield "params", name, f"names other than {', '.join(TAKEN)}"
        _check_name(learner, "params", name)
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            yield f"params: {name}", value, "numbers and arrays of numbers"
        if array.dtype.kind in "iu":
            for large in array[(array < -(2**31)) | (array >= 2**31)].tolist():
                yield f"params: {name}", large, "whole numbers of 32 bits; larger ones as floats"
    yield from _missing_functions(learner)
    if learner.blocks is None:
        return
    if not isinstance(learner.blocks, BlockForm):
        yield "blocks", learner.blocks, "a BlockForm, or None"
    yield from _missing_functions(learner.blocks)
    if kind.sums is None:
        known = " or ".join(each.name for each in FEEDBACKS.values() if each.sums is not None)
        accepted = f"{known} in block form, which is given sums alone"
        yield "feedback", learner.feedback, accepted
    functions = {name: getattr(learner, name) for name in ("init", "act", "update")}
    forms = {name: _block_form(function) for name, function in functions.items()}
    others = [name for name, form in forms.items() if form != learner.blocks]
    if others and any(forms.values()):
        what = f"of other functions than its {' and '.join(others)}"
        yield "blocks", what, "None, or the block form of the new functions"


def _missing_functions(form: Any) -> Iterator[tuple[str, Any, str]]:
    """The fields of a Learner or BlockForm that cannot be called; those with a default may be None."""
    for field, value in form._asdict().items():
        optional = field in form._field_defaults
        if field in SIGNATURES and not callable(value) and not (optional and value is None):
            yield field, value, "a function, or None" if optional else "a function"


def _check_name(learner: Learner, what: str, name: str) -> None:
    """That a result can have a variable or coordinate of this name."""
    printable(f"learner {learner.name!r}: {what}", name)
    if "/" in name:  # a path in a file of results
        raise _refusal(learner, f"{what}: {name!r}", "names without '/'")


def _block_form(function: Any) -> BlockForm | None:
    """The form of which `from_blocks` made a function."""
    form = getattr(getattr(function, "__self__", None), "form", None)
    return form if isinstance(form, BlockForm) else None


def check_report(learner: Learner, state: Any) -> dict[str, Any]:
    """The names, shapes and dtypes that ``learner.report`` gives for a lane with this state.

    Nothing is computed: ``state`` may be arrays or their shapes (`jax.eval_shape`). Raises
    ValueError for names that results have anyway and for what is no array of numbers. For the block
    engine give ``learner._replace(report=learner.blocks.report)`` and the block form's state.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import check_report
        >>> boastful = jb.make_learner("uniform")._replace(report=lambda state: {"regret": 0.0})
        >>> check_report(boastful, ())
        Traceback (most recent call last):
        ...
        ValueError: learner 'uniform': report: 'regret'; accepted: names other than learner, ...
    """
    if learner.report is None:
        return {}
    try:
        with x64(), named(learner.name, "report"):
            found = jax.eval_shape(lambda given: dict(learner.report(given)), state)  # type: ignore[misc]
    except (TypeError, ValueError) as error:
        what = f"report: fails for this state ({str(error).splitlines()[0]})"
        accepted = "a function of the state that returns a dictionary, name -> array"
        raise _refusal(learner, what, accepted) from error
    taken = (*RESERVED, *dict(learner.params))  # but PHASED, which are reports
    for name, value in found.items():
        if not isinstance(name, str) or not name or name in taken:
            raise _refusal(learner, f"report: {name!r}", f"names other than {', '.join(taken)}")
        _check_name(learner, "report", name)
        dtype = getattr(value, "dtype", None)
        if dtype is None or not any(jnp.issubdtype(dtype, kind) for kind in REAL):
            what = f"report: {name}: {dtype or type(value).__name__}"
            raise _refusal(learner, what, "arrays of numbers")
        axes = PHASED.get(name, value.ndim)
        if value.ndim != axes:
            what = f"report: {name}: shape {tuple(value.shape)}"
            raise _refusal(learner, what, f"{axes} axes (a phase's number first)")
    return found


# Whether functions fit together: shapes and types of what they give.

TOLERANCE = 1e-4
"""Of the sum of probabilities in 32 bits. Float32 sums of up to 1,000 terms below 1 err by less than 1e-4."""
MOST_SHOWN = 12
"""Probabilities of a state that an error lists."""


@contextmanager
def named(name: str, function: str) -> Iterator[None]:
    """What fails inside says whose it is.

    Example:
        >>> with named("mine", "act"):
        ...     raise LearnerError("act gives 3")
        Traceback (most recent call last):
        ...
        jaxbandit.errors.LearnerError: learner 'mine': act gives 3
    """
    try:
        yield
    except LearnerError as error:
        raise LearnerError(f"learner {name!r}: {error}") from error
    except Exception as error:
        error.add_note(f"in {function} of learner {name!r}")
        raise


def check_first_state(state: Any) -> Any:
    """The state if every leaf is an array or a number, else LearnerError. A key of jax is neither.

    Example:
        >>> check_first_state({"mean": 0.0, "best": "left"})
        Traceback (most recent call last):
        ...
        jaxbandit.errors.LearnerError: init gives ['best']: str; accepted: a tree of arrays and numbers
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        key, accepted = is_key(leaf), "a tree of arrays and numbers"
        if key:  # states are saved, and jax keeps keys from being numbers
            accepted += "; of a key, jax.random.key_data(key)"
        if key or not _is_array(leaf):
            where = jax.tree_util.keystr(path)
            seen = f"{where}{where and ': '}{'a key' if key else type(leaf).__name__}"
            raise LearnerError(f"init gives {seen}; accepted: {accepted}")
    return state


def check_steps(rules: Any, sizes: tuple[int, int, int], constants: Any, state: Any) -> None:
    """Raises LearnerError unless ``act`` gives a policy and ``update`` a state like the one before.

    Args:
        rules: a learner.
        sizes: H, k and A.
        constants: its constants for one lane, arrays or their shapes.
        state: its first state for one lane, likewise.
    """
    whole, real = (jax.ShapeDtypeStruct(sizes[:1], dtype) for dtype in (jnp.int32, jnp.float32))
    episode = Trajectory(levels=whole, actions=whole, rewards=real, next_levels=whole)
    word = jax.ShapeDtypeStruct((), jnp.uint32)

    def step(state, constants, episode, word):
        with named(rules.name, "act"):
            policy = rules.act(state, jax.random.key(0), constants)
            _check_policy_shape(sizes, policy)
        seen = observe(rules.feedback, episode, word)
        with named(rules.name, "update"):
            after = rules.update(state, policy, seen, constants)
            check_same_state(state, after, "update gives")

    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)),
        (state, constants),
    )
    jax.eval_shape(step, *shapes, episode, word)


def check_blocks(blocks: Any, sizes: tuple[int, int, int] | None = None) -> None:
    """Raises LearnerError unless these are blocks of one lane whose arrays fit together, and fit H, k and A if they are known."""
    if not isinstance(blocks, Blocks):
        raise LearnerError(f"next_block returns {type(blocks).__name__}; accepted: jb.Blocks")
    arms = (max(1, *np.shape(blocks.episodes)[:1]),) if np.ndim(blocks.episodes) else (1,)
    if sizes is None:
        states = (*np.shape(blocks.policy), 1, 1, 1)[:3]
    else:
        states = (sizes[0], sizes[1] + 1, sizes[2])
    wanted = {
        "policy": ("float [H, k+1, A]", jnp.floating, states),
        "stage": ("int []", jnp.integer, ()),
        "rows": ("float [B, k+1, A]", jnp.floating, (*arms, *states[1:])),
        "episodes": ("numbers [B]", jnp.number, arms),
    }
    for field, (words, kind, shape) in wanted.items():
        leaf = getattr(blocks, field)
        seen = np.shape(leaf) if _is_array(leaf) else None
        dtype = jnp.result_type(leaf) if _is_array(leaf) else type(leaf).__name__
        if seen != shape or not jnp.issubdtype(dtype, kind) or 0 in seen:
            shown = "" if seen is None else f" {list(seen)}"
            raise LearnerError(
                f"next_block gives {field}: {dtype}{shown}; accepted: {words} = {list(shape)}"
            )


def check_same_state(before: Any, after: Any, what: str = "absorb returns") -> None:
    """Raises LearnerError unless ``after`` is a state like the one before."""
    seen, accepted = described(after), described(before)
    if seen != accepted:
        raise LearnerError(f"{what} {seen}; accepted: a state like that of init, {accepted}")


def in_32_bits(numbers: Any) -> Any:
    """Actions or a stage of 64 bits as int32, where those that do not fit are still out of range: jax alone would keep
    their last 32 bits, and so another action. Everything else is left as it is.

    Example:
        >>> in_32_bits(np.array([[1, 2**32 + 1]])).tolist()
        [[1, 2147483647]]
    """
    if getattr(numbers, "dtype", None) not in (np.int64, np.uint64):
        return numbers
    if not isinstance(numbers, jax.core.Tracer):
        return np.clip(np.asarray(numbers), -1, 2**31 - 1).astype(np.int32)
    with x64():  # also where engines compute in 32 bits
        return jnp.clip(numbers.astype(jnp.int64), -1, 2**31 - 1).astype(jnp.int32)


def is_policy(policy: Array, num_actions: int) -> jax.Array:
    """Whether actions [H, k+1] or probabilities [H, k+1, A] are those of a policy at each state, bool [H, k+1].

    Level 0, where nothing matters, always is.
    """
    if policy.ndim == 2:
        right = (policy >= 0) & (policy < num_actions)
    else:  # written so that nan is wrong too; a sum of half floats would be rounded to 1
        policy = policy.astype(jnp.float32)
        total = jnp.sum(policy, axis=-1)
        right = (jnp.min(policy, axis=-1) >= 0) & (jnp.abs(total - 1) <= TOLERANCE)
    return right.at[:, 0].set(True)


def wrong_policy(name: str, policy: np.ndarray, num_actions: int, episode: int) -> LearnerError:
    """The error for a policy that is none at some state; episodes count from 1."""
    right = np.asarray(is_policy(jnp.asarray(policy), num_actions))
    stage, level = np.argwhere(~right)[0]
    seen = np.asarray(policy[stage, level]).tolist()
    if policy.ndim == 2:
        what, accepted = "action", f"0..{num_actions - 1}"
    else:
        what, accepted = "probabilities", f"{num_actions} probabilities >= 0 that sum to 1"
        if num_actions > MOST_SHOWN:
            seen = f"{str(seen[:MOST_SHOWN])[:-1]}, ...] (sum {sum(seen):.7g})"
    return LearnerError(
        f"learner {name!r}, episode {episode}, stage {stage + 1}, level {level}: {what} {seen}; "
        f"accepted: {accepted}"
    )


def check_policy(name: str, sizes: tuple[int, int, int], policy: Any, episode: int) -> None:
    """Raises LearnerError unless this is the policy of an MDP of these sizes, H, k and A."""
    with named(name, "act"):
        _check_policy_shape(sizes, policy)
    if not np.asarray(is_policy(jnp.asarray(policy), sizes[2])).all():
        raise wrong_policy(name, np.asarray(policy), sizes[2], episode)


def _check_policy_shape(sizes: tuple[int, int, int], policy: Any) -> None:
    H, k, A = sizes
    seen = type(policy).__name__
    if _is_array(policy):
        dtype, shape = jnp.result_type(policy), np.shape(policy)
        if jnp.issubdtype(dtype, jnp.integer) and shape == (H, k + 1):
            return
        if jnp.issubdtype(dtype, jnp.floating) and shape == (H, k + 1, A):
            return
        seen = f"{dtype}{list(shape)}"
    raise LearnerError(
        f"act gives {seen}; accepted: actions, integers [H, k+1] = {[H, k + 1]}, "
        f"or probabilities, floats [H, k+1, A] = {[H, k + 1, A]}"
    )


def described(tree: Any) -> str:
    """The structure, types and shapes of a tree in words; equal for trees that can stand for each other."""
    leaves, structure = jax.tree.flatten(tree)
    words = ", ".join(
        f"{jnp.result_type(leaf)} {list(np.shape(leaf))}"
        if _is_array(leaf)
        else type(leaf).__name__
        for leaf in leaves
    )
    return f"{structure} of {words}" if words else str(structure)


def is_key(leaf: Any) -> bool:
    """Whether it is a typed key, or an array of them."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _is_array(leaf: Any) -> bool:
    """Arrays, tracers, shapes and numbers; no text, no objects."""
    if isinstance(leaf, bool | int | float | complex):
        return True
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "f") not in "OSUMm"


def make_constants(rules: Learner | BlockForm, problem: Problem, params: Params) -> Any:
    """The constants of one instance and parameter setting, in the precision now in force.

    Without ``constants`` they are the parameters, name -> array. Evaluated on the host: ``problem`` has a whole number of episodes and no tracers. Reals become
    float32 (float64 under x64) and whole numbers int32 (int64); a number that has no place there is
    an error, never another number.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import make_constants
        >>> learner = jb.make_learner("expref")
        >>> problem = jb.Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000_000)
        >>> make_constants(learner, problem, learner.params).episodes_per_arm[8:11].tolist()
        [16842553, 67370211, 0]
    """
    whole = jnp.result_type(int)
    narrow = {"f": jnp.result_type(float), "i": whole, "u": np.dtype(f"u{whole.name}")}

    def place(path: Any, leaf: Any) -> np.ndarray:
        where = f"constants{jax.tree_util.keystr(path)}"
        array = None if is_key(leaf) else np.asarray(leaf)
        if array is None or array.dtype.kind in "OSUMm":
            seen = "a key" if array is None else repr(leaf)[:60]
            accepted = "a tree of numbers and arrays of them, at most 64 bits each"
            accepted += "; of a key, jax.random.key_data(key)" if array is None else ""
            raise _refusal(rules, f"{where}: {seen}", accepted)
        dtype = narrow.get(array.dtype.kind, array.dtype)
        if array.dtype.itemsize <= dtype.itemsize:
            return array
        with np.errstate(over="ignore"):
            placed = array.astype(dtype)
        exact = array.dtype.kind in "iu"
        wrong = placed != array if exact else np.isfinite(array) & ~np.isfinite(placed)
        if np.any(wrong):
            what = f"{where}: {array[wrong].ravel()[0]}"
            raise _refusal(rules, what, f"numbers that {dtype.name} holds, on this engine")
        return placed

    with x64():
        try:
            found = dict(params) if rules.constants is None else rules.constants(problem, params)
        except ValueError as error:  # such as a policy that does not fit this MDP
            name = getattr(rules, "name", None)
            raise ValueError(f"learner {name!r}: {error}" if name else str(error)) from error
        return jax.tree_util.tree_map_with_path(place, found)
