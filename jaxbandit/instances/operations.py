"""Three stopping and stocking problems from operations research: secretary, single-leg revenue management, inventory."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbandit.checks import real_array
from jaxbandit.mdp import MDP, from_arrays
from jaxbandit.mdp.arrays import Outcomes, from_outcomes
from jaxbandit.specs import Real, Whole, takes


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


@takes(capacity=Whole(1, 500), horizon=Whole(1))
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
    pay = np.asarray(real_array("fares", fares), np.float64)
    come = np.asarray(real_array("arrivals", arrivals), np.float64)
    if pay.ndim != 1 or not pay.size or not (np.isfinite(pay) & (pay >= 0)).all():
        raise ValueError(f"fares: {fares!r}; accepted: finite numbers >= 0, [J]")
    J = len(pay)
    if come.shape not in ((J,), (horizon, J)):
        raise ValueError(
            f"arrivals: shape {come.shape}; accepted: [J] = ({J},) or [H, J] = ({horizon}, {J})"
        )
    if not (come >= 0).all() or (come.sum(-1) > 1 + 1e-9).any():
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
    p = np.asarray(real_array("demand", demand), np.float64)
    if p.ndim != 1 or not p.size or not (p >= 0).all() or abs(p.sum() - 1) > 1e-5:
        raise ValueError(
            f"demand: {demand!r}; accepted: probabilities of 0, 1, 2, ... that sum to 1"
        )
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
