"""MDPs from and to arrays P [S, A, S] and R [S, A], and from gymnasium's tables of transitions.

State s is level s + 1; a transition into a terminal state leads to level 0, the end of an episode. Rewards may be any
finite numbers, but those of an `MDP` are at least 0 and at most 1 in total. So the reward r of stage i becomes

    (r - low_i) / scale,    low_i = min(0, the smallest reward of stage i),

where scale is 1 if no run collects more than that, and otherwise the largest total of a run. All runs have H stages, so
this shifts all values by the same number, sum_i low_i, and optimal policies stay optimal. A run that ends early misses
the shift of the stages left; therefore the outcome that ends it pays -sum_{j>i} low_j / scale at once. The map is kept in
the labels (`Labels.scale`, `Labels.offsets`): planning and `jaxbandit.in_units` give the numbers that went in.

A random start takes one stage more: in the first one every action moves by the start distribution and pays nothing. The
horizon of the MDP is then H + 1, values and regret are those of the H stages. Where so many outcomes in a stage would make
the table too large for memory, two stages draw the start: its block, and then the state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxbandit.checks import choice, distributions, entries, real_array, whole
from jaxbandit.mdp.labels import Labels, labels_of, names_of, remember
from jaxbandit.mdp.model import MDP, largest_total, single

AXES = "stage, state, action, next state"
MOST_ENTRIES = 2**26
"""Of a table of outcomes: half a GB in float64."""
LARGEST_TOTAL = 1e300
"""Of the rewards of a run."""


@dataclass(frozen=True, eq=False)
class Form:
    """The form of the arrays that an MDP was made from."""

    staged: bool = True
    """Whether P had a leading axis of stages."""
    reward: str = ""
    """The axes of R: "S", "SA" or "SAS", after an H if it had stages."""
    terminal: tuple[int, ...] = ()
    drawn: int = 0
    """How many stages draw the start."""
    following: np.ndarray | None = None
    """int [1 or H, S, A, M]: the state that an outcome leads to, also where it ends the episode; None if such a state
    does not always end it."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Tables of outcomes [1 or H, S, A, M] of a model with S states, in the unit of the user."""

    prob: np.ndarray
    reward: np.ndarray
    following: np.ndarray
    """int: the next state."""
    ends: np.ndarray
    """bool: whether the episode ends."""


def from_arrays(
    P: Any,
    R: Any,
    horizon: int,
    start: Any = 0,
    terminal: int | Iterable[int] = (),
    reward: str | tuple[Any, Any] = "mean",
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
) -> MDP:
    """The MDP with transitions P and rewards R, played for ``horizon`` stages.

    Args:
        P: [S, A, S], P[s, a, s'] is the probability of moving from s to s' under a; or [H, S, A, S].
        R: [S], [S, A] or [S, A, S], or one of them with a leading H (if both fit, without): what is paid in a stage that
            is spent in s. Any finite numbers.
        horizon: H, the number of stages.
        start: the first state, or the probabilities of the first state, [S]; then the MDP has one stage more, which
            draws it and pays nothing.
        terminal: states that end the episode when they are entered; nothing is paid there.
        reward: "mean" pays R itself; "bernoulli" pays 1 with probability R, else 0; (values [M], probabilities
            [S, A, M] or [H, S, A, M]) pays values[m] with these probabilities, whatever the next state is (R is then
            None, or their means).
        states: names of the states, [S].
        actions: names of the actions, [A] or [H][A].

    Rewards that are negative or add up to more than 1 are mapped (see the module): `optimal`, `evaluate` and the other
    functions of `jaxbandit.planning` still answer in the numbers that went in, and `jaxbandit.in_units` turns the
    results of a sweep into them.

    Example:
        >>> import jaxbandit as jb
        >>> P = [[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]]      # P[s][a][s']
        >>> mdp = jb.from_arrays(P, [[0, -1], [5, 8]], horizon=10)
        >>> mdp, mdp.num_states
        (MDP(H=10, k=2, A=2, general), 2)
        >>> value, policy = jb.optimal(mdp)
        >>> f"{value:.4f}", policy[0, 1:].tolist()                       # level s + 1 is state s
        ('41.0078', [1, 0])
    """
    horizon = whole("horizon", horizon)
    P, staged = _transitions(P, horizon)
    S, A = P.shape[1:3]
    ending = _terminal(terminal, S)
    ended = np.isin(np.arange(S), ending)
    _check_distributions("P", P, staged, but=ended[:, None])
    if isinstance(reward, str):
        choice("reward", reward, ("mean", "bernoulli"))
        R, axes = _rewards(R, S, A, horizon)
    else:
        R, axes, paid, chances = _law(reward, R, S, A, horizon)
    _check_terminal_rewards(R, axes, ended)
    outcomes = _spread(P, R, ended)
    if reward == "bernoulli":
        heads = outcomes.reward
        for x in heads[((heads < 0) | (heads > 1)) & (outcomes.prob > 0)][:1]:
            raise ValueError(f"R: {x:g} with reward='bernoulli'; accepted: probabilities, 0 to 1")
        chances = np.stack([heads, 1 - heads], axis=-2)
        outcomes = _paying(outcomes, np.array([[1.0], [0.0]]), chances, axis=-2)
    elif reward != "mean":
        outcomes = _paying(outcomes, paid, chances[..., None, :], axis=-1)
    form = Form(staged, axes, ending, following=outcomes.following)
    return from_outcomes(outcomes, horizon, start, states, actions, form=form)


def to_arrays(mdp: MDP) -> tuple[np.ndarray, np.ndarray, Any]:
    """(P, R, start) of an MDP, as `from_arrays` takes them: ``from_arrays(P, R, horizon, start)`` has the same values.

    State s is level s + 1. P is [H, S, A, S] and R, the mean reward, [H, S, A], or [H, S, A, S] where it depends on the
    next state. What `from_arrays` made comes back in the shapes and the unit that went in, terminal states as absorbing
    ones that pay nothing. Where an MDP ends without a terminal state (at level 0), P has one state more, the last,
    which is absorbing and pays nothing.

    Example:
        >>> import jaxbandit as jb
        >>> P, R, start = jb.to_arrays(jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4))
        >>> P.shape, R.shape, start                        # capacity 1, capacity 2, and nothing left
        ((3, 3, 4, 3), (3, 3, 4, 3), 1)
        >>> P, R, start = jb.to_arrays(jb.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [-3.0, 7.0], horizon=5))
        >>> P.shape, R.tolist(), start
        ((2, 1, 2), [-3.0, 7.0], 0)
    """
    words = labels_of(single(mdp))
    form = words.arrays or Form()
    prob, paid, level = (np.asarray(x)[form.drawn :, 1:] for x in mdp[:3])
    prob = prob.astype(np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    H, S, A, M = prob.shape
    ends = level == 0
    known = form.following is not None and bool(form.terminal)
    following = np.where(ends, form.following if known else S, level - 1)  # type: ignore[arg-type]
    if words.offsets:
        lows = np.asarray(words.offsets[form.drawn :])[:, None, None, None]
        paid = paid * words.scale + lows + np.where(ends, _left(lows), 0)
    size = S + (0 if known else int((ends & (prob > 0)).any()))
    P, R = np.zeros((H, size, A, size)), np.zeros((H, size, A, size))
    place = np.ix_(range(H), range(S), range(A))
    for m in range(M):
        sure = prob[..., m] > 0
        to = np.where(sure, following[..., m], 0)
        P[(*place, to)] += np.where(sure, prob[..., m], 0)
        R[(*place, to)] += np.where(sure, prob[..., m] * paid[..., m], 0)
    R = np.divide(R, P, out=np.zeros_like(R), where=P > 0)
    for state in (*form.terminal, *range(S, size)):
        P[:, state], R[:, state] = 0, 0
        P[:, state, :, state] = 1
    return P if form.staged else P[0], _reduced(P, R, form.reward), _start_of(mdp, form, size)


def from_gymnasium(env: Any, horizon: int) -> MDP:
    """The MDP of a gymnasium environment with a table of transitions, played for ``horizon`` stages.

    ``env.unwrapped.P[s][a]`` is a list of (probability, next state, reward, terminated), as in FrozenLake, CliffWalking
    and Taxi. The first state is drawn from ``env.unwrapped.initial_state_distrib`` (state 0 if there is none). Nothing is
    imported. The environment's own time limit does not count: ``horizon`` does.

    Example:
        >>> import jaxbandit as jb
        >>> class Corridor:
        ...     P = {0: {0: [(1.0, 0, -1, False)], 1: [(0.5, 0, -1, False), (0.5, 1, 10, True)]}, 1: {0: [(1.0, 1, 0, True)], 1: [(1.0, 1, 0, True)]}}
        >>> mdp = jb.from_gymnasium(Corridor(), horizon=3)
        >>> round(float(jb.optimal(mdp)[0]), 3)            # 4.5 (1 + 1/2 + 1/4)
        7.875
    """
    horizon = whole("horizon", horizon)
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    accepted = "an environment with unwrapped.P[s][a] = [(probability, next state, reward, terminated), ...]"
    if table is None or not hasattr(table, "__len__") or not hasattr(table, "__getitem__"):
        seen = type(inner).__name__
        raise ValueError(
            f"env: {seen} has no table of transitions P; accepted: {accepted}, such as FrozenLake, CliffWalking or Taxi; "
            "from arrays of your own use jb.from_arrays(P, R, horizon)"
        )
    S = len(table)
    try:
        rows = [[_merged(table[s][a]) for a in range(len(table[s]))] for s in range(S)]
        A = len(rows[0])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"env: P cannot be read ({error!r}); accepted: {accepted}") from None
    for s, row in enumerate(rows):
        if len(row) != A:
            raise ValueError(
                f"env: P[{s}] has {len(row)} actions, P[0] {A}; accepted: the same number in every state"
            )
    M = max(len(row) for each in rows for row in each)
    prob, reward, following, ends = (np.zeros((1, S, A, M), t) for t in (float, float, int, bool))
    for s, a in np.ndindex(S, A):
        for m, ((to, paid, end), p) in enumerate(rows[s][a].items()):
            place = (0, s, a, m)
            prob[place], reward[place], following[place], ends[place] = p, paid, to, end
    axes = "stage, state, action, outcome"
    entries("env: P", reward, ~np.isfinite(reward), "finite rewards", axes)
    lost = (following < 0) | (following >= S)
    entries("env: P", following, lost, f"next states 0..{S - 1}", axes)
    _check_distributions("env: P", prob, staged=False)
    over = set(following[ends & (prob > 0)].tolist())
    entered = set(following[~ends & (prob > 0)].tolist())
    first = _start(getattr(inner, "initial_state_distrib", 0), S, ())
    apart = not over & entered and not any(first[s] for s in over)
    terminal = tuple(sorted(over)) if apart else ()
    form = Form(False, "SAS", terminal, following=following if apart else None)
    tables = Outcomes(prob=prob, reward=reward, following=following, ends=ends)
    return from_outcomes(tables, horizon, first, form=form)


def _merged(row: Any) -> dict[tuple[int, float, bool], float]:
    """(next state, reward, terminated) -> probability."""
    found: dict[tuple[int, float, bool], float] = defaultdict(float)
    for p, to, paid, end in row:
        found[int(to), float(paid), bool(end)] += float(p)
    return found


def from_outcomes(
    outcomes: Outcomes,
    horizon: int,
    start: Any = 0,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    level: str = "state",
    form: Form | None = None,
) -> MDP:
    """The MDP of outcomes in the unit of the user, with its labels; for constructors, which check their arguments.

    Example:
        >>> import numpy as np, jaxbandit as jb
        >>> tables = [np.array([[[[0.5, 0.5]]]]), np.array([[[[3.0, 1.0]]]]), np.zeros((1, 1, 1, 2), int)]
        >>> mdp = from_outcomes(Outcomes(*tables, ends=np.array([[[[True, False]]]])), horizon=2)
        >>> float(jb.optimal(mdp)[0])                       # 2 + 0.5 x 2
        3.0
    """
    form = form or Form()
    start = _start(start, outcomes.prob.shape[1], form.terminal)
    S, A, M = outcomes.prob.shape[1:]
    draws = _draws(start, (horizon + 1) * (S + 1) * A)
    drawn, width = len(draws), max([M, *(chances.shape[-1] for _, chances in draws)])
    if (horizon + drawn) * (S + 1) * A * width > MOST_ENTRIES:
        raise ValueError(
            f"horizon: {horizon} stages, {S} states, {A} actions and {width} outcomes make a table too large for memory; "
            f"accepted: at most {MOST_ENTRIES:,} entries"
        )
    prob, paid, following, ends = (
        np.broadcast_to(x, (horizon, S, A, M))
        for x in (outcomes.prob, outcomes.reward, outcomes.following, outcomes.ends)
    )
    possible = prob > 0
    possible[:, list(form.terminal)] = False
    paid = np.where(possible, paid, 0)
    if np.abs(paid).max() > LARGEST_TOTAL / (2 * horizon):
        raise ValueError(
            f"R: {np.abs(paid).max():g} over {horizon} stages; accepted: totals of at most {LARGEST_TOTAL:g}"
        )
    lows = np.minimum(paid.min(axis=(1, 2, 3)), 0)
    left = np.where(ends, _left(lows)[:, None, None, None], 0)
    table = (horizon + drawn, S + 1, A, width)
    tables = [np.zeros(table, dtype) for dtype in (np.float64, np.float64, np.int32)]
    tables[0][:, 0, :, 0] = 1
    own = np.s_[drawn:, 1:, :, :M]
    tables[0][own] = prob
    tables[1][own] = np.where(possible, paid - lows[:, None, None, None] - left, 0)
    tables[2][own] = np.where(ends | ~possible, 0, following + 1)
    for i, (levels, chances) in enumerate(draws):
        tables[0][i, 1:, :, : chances.shape[-1]] = chances
        tables[2][i, 1:, :, : levels.shape[-1]] = levels
    first = int(np.argmax(start)) + 1 if drawn < 2 else 1
    mdp = MDP(tables[0], tables[1], tables[2], rank=None, start=np.asarray(first, np.int32))
    scale = max(largest_total(mdp), float(tables[1].max()))
    scale = scale if scale > 1 + 1e-9 else 1.0
    tables[1][own] /= scale
    played = () if actions is None else names_of("actions", actions, horizon, A)
    words = Labels(
        scale=scale,
        level=level,
        actions=played[:1] * drawn + played,
        offsets=(0.0,) * drawn + tuple(lows.tolist()),
        states=names_of("states", [*map(str, range(S))] if states is None else states, 1, S)[0],
        arrays=replace(form, drawn=drawn),
    )
    return remember(mdp, words)


def _draws(start: np.ndarray, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Next levels and probabilities, [1 or S, 1, outcomes], of the stages that draw the start: none if it is certain."""
    states = np.flatnonzero(start)
    n = len(states)
    if n == 1:
        return []
    if n * rows <= MOST_ENTRIES:
        return [((states + 1)[None, None], start[states][None, None])]
    size = int(np.ceil(np.sqrt(n)))  # of a block; the first stage goes to level j + 1 for block j
    blocks, last = np.zeros((2, len(start), 1, size)), np.arange(n) % size
    blocks[0, np.arange(n) // size, 0, last] = states + 1
    blocks[1, np.arange(n) // size, 0, last] = start[states]
    chance = blocks[1].sum(-1)
    blocks[1] = np.divide(blocks[1], chance[..., None], out=blocks[1], where=chance[..., None] > 0)
    used = -(-n // size)
    blocks[1, used:, 0, 0] = 1
    first = np.arange(1, used + 1)[None, None], chance[:used, 0][None, None]
    return [first, (blocks[0].astype(np.int32), blocks[1])]


def _left(lows: np.ndarray) -> np.ndarray:
    """sum_{j > i} low_j along the first axis."""
    return lows[::-1].cumsum(0)[::-1] - lows


def _transitions(P: Any, horizon: int) -> tuple[np.ndarray, bool]:
    """P as float64 [1 or H, S, A, S], and whether it had stages."""
    accepted = "[S, A, S] or [H, S, A, S]"
    P = np.asarray(real_array("P", P, f"probabilities {accepted}"), np.float64)
    if P.ndim not in (3, 4) or 0 in P.shape:
        raise ValueError(f"P: shape {P.shape}; accepted: {accepted}")
    staged = P.ndim == 4
    S, A, after = P.shape[-3:]
    if after != S and after == A:
        axes = "(0, 2, 1, 3)" if staged else "(1, 0, 2)"
        raise ValueError(
            f"P: shape {P.shape}, which reads as [A, S, S], the order of mdptoolbox; accepted: {accepted}: "
            f"P.transpose{axes}"
        )
    if after != S:
        raise ValueError(f"P: shape {P.shape}, {S} states lead to {after}; accepted: {accepted}")
    if staged and len(P) != horizon:
        raise ValueError(f"P: {len(P)} stages, shape {P.shape}; accepted: {horizon}, the horizon")
    return (P if staged else P[None]), staged


def _terminal(terminal: Any, S: int) -> tuple[int, ...]:
    listed = [terminal] if np.ndim(terminal) == 0 else list(terminal)
    what = "states, whole numbers"
    found = {whole("terminal", state, 0, S - 1, what) for state in listed}
    if len(found) == S:
        raise ValueError("terminal: all states; accepted: some, at least one state is left")
    return tuple(sorted(found))


def _start(start: Any, S: int, terminal: tuple[int, ...]) -> np.ndarray:
    """The probabilities of the first state, float64 [S]."""
    accepted = f"a state 0..{S - 1}, or probabilities [S] = ({S},)"
    given = np.asarray(real_array("start", start, accepted))
    if given.ndim == 0:
        prob = (np.arange(S) == given).astype(np.float64)
        if not prob.any():
            raise ValueError(f"start: {start!r}; accepted: {accepted}")
    elif given.shape != (S,):
        raise ValueError(f"start: shape {given.shape}; accepted: {accepted}")
    else:
        prob = given.astype(np.float64)
        distributions("start", prob, "state")
        prob = prob / prob.sum()
    for state in terminal:
        if prob[state] > 0:
            raise ValueError(f"start: state {state} is terminal; accepted: a state that is not")
    return prob


def _check_distributions(name: str, prob: np.ndarray, staged: bool, but: Any = False) -> None:
    """An error unless rows [1 or H, S, A, :] are distributions, which names stages where there are some."""
    if staged:
        distributions(name, prob, AXES, but)
    else:
        distributions(name, prob[0], AXES.removeprefix("stage, "), but)


def _rewards(R: Any, S: int, A: int, horizon: int) -> tuple[np.ndarray, str]:
    """R as float64 [1 or H, S, A or 1, S or 1], and its axes."""
    shapes = {"S": (S,), "SA": (S, A), "SAS": (S, A, S)}
    shapes |= {f"H{axes}": (horizon, *shape) for axes, shape in shapes.items()}
    accepted = ", ".join(f"[{', '.join(axes)}] = {shape}" for axes, shape in shapes.items())
    R = np.asarray(real_array("R", R, f"rewards {accepted}"), np.float64)
    found = [axes for axes, shape in shapes.items() if R.shape == shape]
    if not found:
        turn = "; R.transpose(1, 0, 2) of [A, S, S], R.T of [A, S]" if R.shape in ((A, S, S), (A, S)) else ""  # fmt: skip
        raise ValueError(f"R: shape {R.shape}; accepted: {accepted}{turn}")
    named = AXES if found[0][0] == "H" else AXES.removeprefix("stage, ")
    entries("R", R, ~np.isfinite(R), "finite numbers", named)
    R = R if found[0][0] == "H" else R[None]
    return R.reshape(R.shape + (1,) * (4 - R.ndim)), found[0]


def _law(
    reward: Any, R: Any, S: int, A: int, horizon: int
) -> tuple[np.ndarray, str, np.ndarray, np.ndarray]:
    """The mean rewards of a law, which R has to be if it is given, as `_rewards` returns them; its values [M] and their
    probabilities [1 or H, S, A, M]."""
    accepted = "'mean', 'bernoulli', or (values [M], probabilities [S, A, M])"
    if not isinstance(reward, tuple | list) or len(reward) != 2:
        raise ValueError(f"reward: {reward!r}; accepted: {accepted}")
    values, prob = (np.asarray(real_array("reward", x, accepted), np.float64) for x in reward)
    M = len(values) if values.ndim == 1 else 0
    if not M or prob.shape not in ((S, A, M), (horizon, S, A, M)):
        raise ValueError(
            f"reward: values of shape {values.shape}, probabilities {prob.shape}; "
            f"accepted: [M] and [S, A, M] = ({S}, {A}, M), or with a leading horizon {horizon}"
        )
    entries("reward", values, ~np.isfinite(values), "finite numbers", "value")
    axes = "SA" if prob.ndim == 3 else "HSA"
    prob = prob.reshape(-1, S, A, M)
    _check_distributions("reward", prob, staged=axes == "HSA")
    means = (prob @ values)[..., None]
    if R is not None:
        given, axes = _rewards(R, S, A, horizon)
        if not np.allclose(given, means, rtol=1e-5, atol=1e-8):
            raise ValueError(
                "R: not the means of reward=(values, probabilities); accepted: None, or these means"
            )
    return means, axes, values, prob


def _check_terminal_rewards(R: np.ndarray, axes: str, ended: np.ndarray) -> None:
    """An error if rewards were meant for entering a terminal state, where nothing is paid."""
    lost = (R != 0).any(axis=(0, 2, 3))
    if (lost & ended).any() and (axes in ("S", "HS") or not (lost & ~ended).any()):
        raise ValueError(
            f"R: pays in terminal state {np.argmax(lost & ended)}, where the episode is over; accepted: 0 there, and the "
            "reward for entering it as R[s, a, s']"
        )


def _spread(P: np.ndarray, R: np.ndarray, ended: np.ndarray) -> Outcomes:
    """One outcome for every possible next state; ``ended``, bool [S], are the terminal ones."""
    S = P.shape[1]
    P = np.where(ended[:, None, None], np.eye(S)[:, None], P)
    M = int((P > 0).sum(-1).max())
    order = np.argsort(~(P > 0), axis=-1, kind="stable")[..., :M]
    R = np.broadcast_to(R, (*np.broadcast_shapes(R.shape[:1], P.shape[:1]), *P.shape[1:]))
    paid = np.take_along_axis(R, np.broadcast_to(order, (len(R), *order.shape[1:])), axis=-1)
    ends = ended[order] | ended[:, None, None]
    prob = np.take_along_axis(P, order, axis=-1)
    paid = np.where(ended[:, None, None], 0, paid)
    return Outcomes(prob / prob.sum(-1, keepdims=True), paid, order, ends)


def _paying(x: Outcomes, paid: np.ndarray, chances: np.ndarray, axis: int) -> Outcomes:
    """Every outcome once for every reward ``paid``, which has these chances, along a new axis beside that of outcomes."""
    prob, following, ends = (np.expand_dims(t, axis) for t in (x.prob, x.following, x.ends))
    tables = np.broadcast_arrays(prob * chances, paid, following, ends)
    return Outcomes(*(table.reshape(*table.shape[:3], -1) for table in tables))


def _reduced(P: np.ndarray, R: np.ndarray, axes: str) -> np.ndarray:
    """R [H, S, A, S] in the axes that went in; without any given, without the last one if it does not matter."""
    mean = (P * R).sum(-1)
    if not axes:
        return mean if np.allclose(np.where(P > 0, R, mean[..., None]), mean[..., None], rtol=1e-12, atol=1e-15) else R  # fmt: skip
    if axes == "SAS":  # where a move is possible at some stage, R is what it pays there
        return np.take_along_axis(R, np.argmax(P > 0, axis=0)[None], axis=0)[0]
    found = {"S": mean[..., 0], "A": mean}.get(axes.removeprefix("H")[1:] or "S", R)
    return found if axes[0] == "H" else found[0]


def _start_of(mdp: MDP, form: Form, size: int) -> Any:
    if not form.drawn:
        return int(mdp.start) - 1
    start = np.eye(mdp.width + 1)[int(mdp.start)]
    for prob, following in zip(mdp.prob[: form.drawn], mdp.next_level[: form.drawn], strict=True):
        here, start = start, np.zeros_like(start)
        np.add.at(start, np.asarray(following)[:, 0], here[:, None] * np.asarray(prob)[:, 0])
    return np.pad(start[1:] / start[1:].sum(), (0, size - mdp.num_states))
