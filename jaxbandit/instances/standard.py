"""Standard problems as MDPs: RiverSwim, deep sea, chain, combination lock, SixArms, FrozenLake and a grid; of operations
research secretary, single-leg revenue management and inventory.

Every constructor names its source, its variant and its parameters. Rewards are those of the source: planning answers in
them, and `jaxbandit.in_units` turns the results of a sweep into them (`jaxbandit.from_arrays`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.checks import distributions
from jaxbandit.mdp import MDP, from_arrays
from jaxbandit.mdp.arrays import Outcomes, from_outcomes
from jaxbandit.specs import Choice, Flag, Probability, Real, Values, Whole, takes

MAPS = {
    "4x4": ("SFFF", "FHFH", "FFFH", "HFFG"),
    "8x8": (
        "SFFFFFFF",
        "FFFFFFFF",
        "FFFHFFFF",
        "FFFFFHFF",
        "FFFHFFFF",
        "FHHFFFHF",
        "FHFFHFHF",
        "FFFHFFFG",
    ),
}
"""Of FrozenLake: S start, F frozen, H hole, G goal."""
MOVES = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
"""In the order of gymnasium's actions: (rows, columns)."""
CORNER = ("...+", ".#.-", "S...")
"""Russell and Norvig's world of 4 x 3 cells."""


@takes(num_states=Whole(2, 1000), horizon=Whole(1))
def riverswim(num_states: int = 6, horizon: int = 20) -> MDP:
    """RiverSwim (Strehl and Littman 2008) in the form of Osband, Russo and Van Roy (2013).

    A swimmer starts at the left bank. Left always succeeds and pays 0.005 at the left bank. Right moves up with
    probability 0.35 (0.6 from the left bank), stays with 0.6 (0.4 at the left bank) and is swept back with 0.05; at the
    right bank it stays with 0.6, is swept back with 0.4, and pays 1.

    Args:
        num_states: S, 6 in the source.
        horizon: H, 20 in the source.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("riverswim")
        >>> f"{jb.optimal(mdp)[0]:.6f}"
        '3.397264'
    """
    S = num_states
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1
        if 0 < s < S - 1:
            P[s, 1, s - 1 : s + 2] = 0.05, 0.6, 0.35
    P[0, 1, :2] = 0.4, 0.6
    P[-1, 1, -2:] = 0.4, 0.6
    R[0, 0], R[-1, 1] = 0.005, 1
    return from_arrays(P, R, horizon, actions=["left", "right"])


@takes(size=Whole(2, 500), move_cost=Real(low=0))
def deep_sea(size: int = 10, move_cost: float = 0.01) -> MDP:
    """Deep sea of bsuite (Osband et al. 2020), deterministic, with the same actions in every cell.

    A diver sinks one row a stage in a grid of ``size`` x ``size`` cells, a column to the left or to the right. Right
    costs move_cost / size; right in the last cell of the last row pays 1. The row is the stage, so the states are the
    columns. Only one of 2^(size - 1) paths finds the treasure; V* = 1 - move_cost.

    Args:
        size: N, the rows (the horizon) and the columns (the states).
        move_cost: of all moves to the right together.

    Example:
        >>> import jaxbandit as jb
        >>> f"{jb.optimal(jb.make_instance('deep-sea', size=8))[0]:.6f}"
        '0.990000'
    """
    N = size
    P, R = np.zeros((N, 2, N)), np.zeros((N, N, 2))
    for s in range(N):
        P[s, 0, max(s - 1, 0)] = 1
        P[s, 1, min(s + 1, N - 1)] = 1
    R[:, :, 1] = -move_cost / N
    R[-1, -1, 1] += 1
    return from_arrays(P, R, N, actions=["left", "right"])


@takes(
    num_states=Whole(2, 1000),
    horizon=Whole(1),
    slip=Probability(),
    small=Real(low=0),
    large=Real(low=0),
)
def chain(
    num_states: int = 5,
    horizon: int = 20,
    slip: float = 0.2,
    small: float = 2.0,
    large: float = 10.0,
) -> MDP:
    """The chain of Dearden, Friedman and Russell (1998) and Strens (2000), the "5-state chain".

    "forward" moves one state up, and stays at the last one, which pays ``large``; "back" returns to the first state and
    pays ``small``. With probability ``slip`` an action has the effect of the other one.

    Args:
        num_states: S, 5 in the source.
        horizon: H; the source has no end.
        slip: 0.2 in the source.
        small: 2 in the source.
        large: 10 in the source.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("chain", slip=0.0, horizon=8)
        >>> f"{jb.optimal(mdp)[0]:.0f}"                     # four steps, then 10 four times
        '40'
    """
    S = num_states
    forward, back = np.minimum(np.arange(S) + 1, S - 1), np.zeros(S, int)
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    # forward and back never lead to the same state, so the next state tells which of them it was
    for a, share in ((0, 1 - slip), (1, slip)):
        P[np.arange(S), a, forward] += share
        P[np.arange(S), a, back] += 1 - share
    R[:, :, 0] = small
    R[-1, :, -1] = large
    return from_arrays(P, R, horizon, actions=["forward", "back"])


@takes(length=Whole(1, 300), num_actions=Whole(2, 100), horizon=Whole(1))
def combination_lock(length: int = 5, num_actions: int = 3, horizon: int = 10) -> MDP:
    """The combination lock (Whitehead 1991; Kakade 2003): one action opens the next digit, all others begin again.

    Digit s is opened by action s mod A. The last digit pays 1 and ends the episode. Random actions open the lock in one
    try with probability A^-length.

    Args:
        length: the digits, which are the states.
        num_actions: A.
        horizon: H; with less than ``length`` stages nothing can be won.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("combination-lock", length=4, horizon=4)
        >>> float(jb.optimal(mdp)[0])
        1.0
    """
    S = length + 1  # the last state is the open lock
    P, R = np.zeros((S, num_actions, S)), np.zeros((S, num_actions, S))
    P[:, :, 0] = 1
    for s in range(length):
        P[s, s % num_actions] = np.eye(S)[s + 1]
    R[length - 1, :, length] = 1
    return from_arrays(P, R, horizon, terminal=[length])


@takes(horizon=Whole(1))
def six_arms(horizon: int = 20) -> MDP:
    """SixArms (Strehl and Littman 2008): arms that pay more are harder to reach.

    From the centre, action a reaches arm a + 1 with probability 1, 0.15, 0.1, 0.05, 0.03, 0.01, else nothing happens. On
    arm 1 every action but 4 stays and pays 50; on arm i = 2..6 action i - 1 stays and pays 133, 300, 800, 1660, 6000. All
    other actions lead back to the centre and pay nothing.

    Args:
        horizon: H; the source has no end.

    Example:
        >>> import jaxbandit as jb
        >>> f"{jb.optimal(jb.make_instance('six-arms', horizon=2))[0]:g}"      # 0.01 x 6000 beats 50
        '60'
    """
    reach = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)
    pay = (50, 133, 300, 800, 1660, 6000)
    P, R = np.zeros((7, 6, 7)), np.zeros((7, 6))
    for a in range(6):
        P[0, a, 0], P[0, a, a + 1] = 1 - reach[a], reach[a]
    for arm in range(1, 7):
        staying = np.arange(6) != 4 if arm == 1 else np.arange(6) == arm - 1
        P[arm, staying, arm], P[arm, ~staying, 0] = 1, 1
        R[arm, staying] = pay[arm - 1]
    return from_arrays(P, R, horizon, states=["centre", *(f"arm {i}" for i in range(1, 7))])


@takes(map_name=Choice(*MAPS), is_slippery=Flag, horizon=Whole(1))
def frozen_lake(map_name: str = "4x4", is_slippery: bool = True, horizon: int = 100) -> MDP:
    """FrozenLake of gymnasium (FrozenLake-v1), with the table of transitions that it has.

    States are cells, row by row; actions are left, down, right and up; walls hold. On slippery ice one moves in the
    intended direction or in one of the two beside it, each with probability 1/3. Holes and the goal end the episode; the
    goal pays 1. V* of the slippery 4x4 map is 0.744190 at H = 100, gymnasium's limit there.

    Args:
        map_name: "4x4" or "8x8".
        is_slippery: as in gymnasium.
        horizon: H, 100 in gymnasium for 4x4 and 200 for 8x8.

    Example:
        >>> import jaxbandit as jb
        >>> f"{jb.optimal(jb.make_instance('frozen-lake'))[0]:.6f}"
        '0.744190'
    """
    cells = MAPS[map_name]
    flat = "".join(cells)
    turns = {-1: 1 / 3, 0: 1 / 3, 1: 1 / 3} if is_slippery else {0: 1.0}
    P = _walks(cells, turns)
    R = np.zeros_like(P)
    R[:, :, flat.index("G")] = 1
    terminal = [s for s, cell in enumerate(flat) if cell in "HG"]
    return from_arrays(P, R, horizon, flat.index("S"), terminal, actions=list(MOVES))


@takes(horizon=Whole(1), slip=Probability(), step_reward=Real())
def grid_world(
    rows: Sequence[str] = CORNER,
    horizon: int = 20,
    slip: float = 0.2,
    step_reward: float = -0.04,
) -> MDP:
    """The grid of Russell and Norvig (Artificial Intelligence, chapter on complex decisions), or one of your own.

    One moves in the intended direction with probability 1 - slip, and to either side of it with slip / 2; walls hold.
    Every stage costs -step_reward; entering "+" pays 1 more, entering "-" 1 less, and both end the episode. On the
    default grid V* tends to 0.705 as H grows, the utility that the book prints for the start.

    Args:
        rows: the cells as text: "." free, "#" wall, "S" start, "+" and "-" terminal.
        horizon: H; the source has no end.
        slip: 0.2 in the source.
        step_reward: -0.04 in the source.

    Example:
        >>> import jaxbandit as jb
        >>> f"{jb.optimal(jb.make_instance('grid-world', horizon=100))[0]:.3f}"
        '0.705'
    """
    accepted = (
        "rows of equal length of the cells . # + - and one S, and a cell that is not terminal"
    )
    if not isinstance(rows, list | tuple) or not all(isinstance(row, str) for row in rows):
        raise ValueError(f"rows: {rows!r}; accepted: {accepted}")
    flat = "".join(rows)
    if len({len(row) for row in rows}) != 1 or flat.count("S") != 1 or set(flat) - set(".#+-S"):
        raise ValueError(f"rows: {list(rows)!r}; accepted: {accepted}")
    P = _walks(rows, {0: 1 - slip, -1: slip / 2, 1: slip / 2})
    R = np.full_like(P, step_reward)
    ends = [s for s, cell in enumerate(flat) if cell in "+-"]
    for s in ends:
        R[:, :, s] += 1 if flat[s] == "+" else -1
    return from_arrays(P, R, horizon, flat.index("S"), ends, actions=list(MOVES))


@takes(num_candidates=Whole(1, 10_000))
def secretary(num_candidates: int = 10) -> MDP:
    """The secretary problem (Lindley 1961; Gilbert and Mosteller 1966): take the best of n candidates, or nothing.

    Candidates arrive in random order, one a stage. The state says whether the present one is the best so far, which the
    i-th is with probability 1 / i. Taking ends the episode; it pays 1 if that candidate is the best of all, which has
    probability i / n if it is the best so far and 0 otherwise. V* tends to 1 / e.

    Args:
        num_candidates: n, which is the horizon.

    Example:
        >>> import jaxbandit as jb
        >>> f"{jb.optimal(jb.make_instance('secretary'))[0]:.4f}"
        '0.3987'
    """
    n = num_candidates
    P, R = np.zeros((n, 3, 2, 3)), np.zeros((n, 3, 2))
    for i in range(n):
        record = 1 / min(i + 2, n)  # after the last stage nobody comes
        P[i, :, 0] = 1 - record, record, 0
        P[i, :, 1] = 0, 0, 1
        R[i, 1, 1] = (i + 1) / n
    states = ["not the best so far", "best so far", "over"]
    return from_arrays(P, R, n, 1, [2], reward="bernoulli", states=states, actions=["pass", "take"])


@takes(
    fares=Values("J", low=0),
    arrivals=Values("J or H J", low=0),
    capacity=Whole(1, 500),
    horizon=Whole(1),
)
def revenue_management(
    fares: Any = (200.0, 150.0, 120.0, 80.0),
    arrivals: Any = (0.1, 0.15, 0.2, 0.25),
    capacity: int = 5,
    horizon: int = 15,
) -> MDP:
    """Single-leg revenue management in discrete time (Lee and Hersh 1993; Lautenbacher and Stidham 1999).

    Every stage brings at most one request for a seat, of fare class j with probability arrivals[j]. Action a accepts the
    a highest fares, 0..J. An accepted request pays its fare and takes a seat; the episode ends when all are sold. The
    level of the MDP is the number of seats left. The default data are an example of our own.

    Args:
        fares: [J], in any order.
        arrivals: their probabilities, [J] or [H, J]; the rest of 1 is that nobody comes.
        capacity: the seats.
        horizon: H, the number of stages.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("revenue-management", fares=[100, 60], arrivals=[0.5, 0.5], capacity=1, horizon=2)
        >>> float(jb.optimal(mdp)[0])                       # wait for 100: 50 + 0.5 x 80
        90.0
    """
    pay, come = np.asarray(fares), np.asarray(arrivals)
    J = len(pay)
    if come.shape not in ((J,), (horizon, J)):
        raise ValueError(
            f"arrivals: shape {come.shape}; accepted: [J] = ({J},) or [H, J] = ({horizon}, {J})"
        )
    if (come.sum(-1) > 1 + 1e-9).any():
        raise ValueError(f"arrivals: {arrivals!r}; accepted: probabilities that sum to at most 1")
    order = np.argsort(-pay, kind="stable")
    come = np.atleast_2d(come)[:, order]
    nobody = np.maximum(1 - come.sum(-1, keepdims=True), 0)
    prob = np.concatenate([come, nobody], axis=-1)  # [1 or H, J + 1]
    taken = np.arange(J + 1)[:, None] > np.arange(J + 1)[None, :]  # action, class
    shape = (len(prob), capacity, J + 1, J + 1)
    seats = np.arange(capacity)[:, None, None]
    following = np.broadcast_to(np.maximum(seats - taken, 0), shape)
    return from_outcomes(
        Outcomes(
            prob=np.broadcast_to(prob[:, None, None], shape),
            reward=np.broadcast_to(np.where(taken, np.append(pay[order], 0.0), 0.0), shape),
            following=following,
            ends=np.broadcast_to((seats == 0) & taken, shape),
        ),
        horizon,
        start=capacity - 1,
        states=range(1, capacity + 1),
        actions=["accept none", *(f"accept from {x:g}" for x in pay[order])],
        level="seats left",
    )


@takes(
    demand=Values("D", low=0),
    capacity=Whole(1, 500),
    horizon=Whole(1),
    price=Real(),
    unit_cost=Real(),
    holding_cost=Real(),
    fixed_cost=Real(),
)
def base_stock(
    demand: Any = (0.25, 0.5, 0.25),
    capacity: int = 3,
    horizon: int = 12,
    price: float = 8.0,
    unit_cost: float = 2.0,
    holding_cost: float = 1.0,
    fixed_cost: float = 0.0,
) -> MDP:
    """Periodic-review inventory with lost sales (Puterman 1994, section 3.2), actions are base-stock levels.

    With x units in stock, action y orders up to max(x, y) units, at fixed_cost + unit_cost per unit ordered; every unit
    then in stock costs holding_cost, and every unit of demand that is met pays price. What is left is the next stock. The
    default data are Puterman's, without his fixed cost of 4, so that a base-stock policy is optimal; with it and
    horizon=3, V* is his 67/16. The first stock is 0.

    Args:
        demand: probabilities of a demand of 0, 1, 2, ... in a stage.
        capacity: the largest stock.
        horizon: H.
        price: of a unit sold.
        unit_cost: of a unit ordered.
        holding_cost: of a unit in stock after ordering.
        fixed_cost: of an order.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("base-stock", horizon=3, fixed_cost=4.0)
        >>> f"{jb.optimal(mdp)[0] * 16:.3f}"
        '67.000'
    """
    p = np.asarray(demand)
    distributions("demand", p, "demand")
    S = capacity + 1
    x, y, d = np.ix_(range(S), range(S), range(len(p)))
    stock = np.maximum(x, y)
    sold = np.minimum(stock, d)
    cost = np.where(stock > x, fixed_cost + unit_cost * (stock - x), 0.0) + holding_cost * stock
    shape = (1, S, S, len(p))
    return from_outcomes(
        Outcomes(
            prob=np.broadcast_to(p / p.sum(), shape),
            reward=np.broadcast_to(price * sold - cost, shape),
            following=np.broadcast_to(stock - sold, shape),
            ends=np.zeros(shape, bool),
        ),
        horizon,
        states=range(S),
        actions=[f"up to {level}" for level in range(S)],
        level="stock",
    )


def _walks(cells: Sequence[str], turns: dict[int, float]) -> np.ndarray:
    """P [S, 4, S] of walks on cells, where an action turns by quarters with these probabilities."""
    height, width = len(cells), len(cells[0])
    steps = list(MOVES.values())
    P = np.zeros((height * width, 4, height * width))
    for row, column, a in np.ndindex(height, width, 4):
        here = row * width + column
        for turn, share in turns.items():
            down, right = steps[(a + turn) % 4]
            i, j = row + down, column + right
            held = not (0 <= i < height and 0 <= j < width) or cells[i][j] == "#"
            P[here, a, here if held else i * width + j] += share
    return P
