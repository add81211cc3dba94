"""ExpRef without noise: every Phi-hat is replaced by Phi, so a run is a short exact computation.

With the theorems' constants noise hardly matters (see `scaling`), so this predicts when actions
fall, for any T and
any H: also beyond the 2^53 episodes that float64 can count. It is written from the pseudocode with
the identity of Lemma 3.5, Phi_{l,i}(a) - Phi_{l,i}(b) = Q_{l,i} (V_{l,i}(a, tail) - V_{l,i}(b,
tail)), apart from the learner's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandit import theory

if TYPE_CHECKING:
    from jaxbandit.mdp import MDP

ROUNDING = 1e-13
"""Differences of Phi below this are ties."""


def exploration_policy(mdp: MDP, ordered: bool, active: np.ndarray | None = None) -> np.ndarray:
    """The exploration policy over the active sets bool [H, k+1, A] (default all): float64 [H, k+1,
    A].

    Uniform (Algorithm 1); or with probability 1 - k/(2H) the active action of largest rank, else
    uniform (Algorithm 3).

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=1, num_values=2)
        >>> exploration_policy(mdp, ordered=True)[0, 1].tolist()
        [0.0625, 0.9375]
    """
    active = np.ones(mdp.prob.shape[:3], bool) if active is None else active
    spread = active / active.sum(-1, keepdims=True)
    if not ordered:
        return spread
    uniform = mdp.width / (2 * mdp.horizon)
    best = np.argmax(np.where(active, np.asarray(mdp.rank), -1), axis=-1)
    return uniform * spread + (1 - uniform) * np.eye(mdp.num_actions)[best]


def tables_of(mdp: MDP) -> tuple[np.ndarray, np.ndarray]:
    """Transition kernel [H, k+1, A, k+1] and mean rewards [H, k+1, A] in float64.

    Example:
        >>> import jaxbandit as jb
        >>> kernel, pay = tables_of(jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3))
        >>> kernel.shape, pay.dtype
        ((2, 2, 3, 2), dtype('float64'))
    """
    prob = np.asarray(mdp.prob, np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    hits = np.asarray(mdp.next_level)[..., None] == np.arange(mdp.width + 1)
    return np.sum(prob[..., None] * hits, axis=-2), np.sum(
        prob * np.asarray(mdp.reward, np.float64), axis=-1
    )


def visits_of(kernel: np.ndarray, policy: np.ndarray, start: int) -> np.ndarray:
    """Q_{l,i} of a randomised policy, [H, k+1]."""
    moves = np.einsum("hla,hlas->hls", policy, kernel)
    visits = np.zeros(moves.shape[:2])
    visits[0, start] = 1
    for i in range(1, len(moves)):
        visits[i] = visits[i - 1] @ moves[i - 1]
    return visits


class Arms(NamedTuple):
    """What the arms of a phase are worth, given the active sets; it does not depend on eps."""

    losses: np.ndarray
    """[arms]: regret per episode of each arm, in the order in which they are played."""
    behind: np.ndarray
    """[H, k+1, A]: max Phi - Phi, infinite for actions that are not active."""
    loss_of_best: float
    """Regret per episode of alpha-hat."""


def arms_of(mdp: MDP, ordered: bool, active: np.ndarray) -> Arms:
    """The exact Phi of every arm of a phase, stages H..1, levels k..1, active actions in index
    order."""
    kernel, pay = tables_of(mdp)
    H, levels, A, _ = kernel.shape
    start = int(mdp.start)
    optimum = np.zeros(levels)
    for i in reversed(range(H)):
        optimum = (pay[i] + kernel[i] @ optimum).max(-1)
    explore = exploration_policy(mdp, ordered, active)
    visits = visits_of(kernel, explore, start)
    earned = np.sum(visits * np.sum(explore * pay, -1), -1)  # [H]: reward of exploration per stage
    tail, losses, behind = np.zeros(levels), [], np.full((H, levels, A), np.inf)
    for i in reversed(range(H)):
        value = pay[i] + kernel[i] @ tail  # V_{l,i}(a, tail)
        others = visits[i] * np.sum(explore[i] * value, -1)
        phi = earned[:i].sum() + others.sum() - others[:, None] + visits[i][:, None] * value
        down = np.arange(levels - 1, 0, -1)
        losses.append(np.maximum(optimum[start] - phi[down], 0.0)[active[i, down]])
        phi = np.where(active[i], phi, -np.inf)
        behind[i] = phi.max(-1, keepdims=True) - phi
        tail = value[np.arange(levels), np.argmax(behind[i] < ROUNDING, -1)]
    return Arms(np.concatenate(losses), behind, max(0.0, float(optimum[start] - tail[start])))


def noiseless_run(
    mdp: MDP, ordered: bool, num_episodes: float, max_phases: int = 96
) -> tuple[np.ndarray, np.ndarray]:
    """Episodes and cumulative regret at the corners of the noiseless run's regret curve, from 0 to
    T.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> episodes, regret = noiseless_run(mdp, ordered=True, num_episodes=1e9)
        >>> float(episodes[-1]), bool(regret[-1] == regret[-2])      # flat at the end
        (1000000000.0, True)
    """
    H, k, A = mdp.horizon, mdp.width, mdp.num_actions
    cutoff = theory.thresholds(H, k, A, ordered)[:, :, None]
    smallest = np.sqrt(H * k * A * np.log(num_episodes) / num_episodes)
    active = np.ones((H, k + 1, A), bool)
    arms = arms_of(mdp, ordered, active)
    episodes, regret = [np.zeros(1)], [np.zeros(1)]
    for phase in range(max_phases):
        epsilon = 2.0**-phase
        if epsilon <= smallest or episodes[-1][-1] >= num_episodes:
            break
        length = np.ceil(12 * np.log(num_episodes) / epsilon**2)
        episodes.append(episodes[-1][-1] + length * np.arange(1, arms.losses.size + 1))
        regret.append(regret[-1][-1] + length * np.cumsum(arms.losses))
        kept = active & (
            arms.behind <= cutoff * epsilon + ROUNDING
        )  # ties, as at unreachable states, are kept
        if (kept != active).any():
            active, arms = kept, arms_of(mdp, ordered, kept)
    t, r = np.concatenate(episodes), np.concatenate(regret)
    if t[-1] < num_episodes:
        t, r = (
            np.append(t, num_episodes),
            np.append(r, r[-1] + (num_episodes - t[-1]) * arms.loss_of_best),
        )
    inside = t < num_episodes
    return np.append(t[inside], num_episodes), np.append(r[inside], np.interp(num_episodes, t, r))


def time_to_target(episodes: np.ndarray, regret: np.ndarray, target: float) -> float:
    """The episode from which on regret(t) / t stays at or below ``target``; inf if it does not by
    the end.

    Example:
        >>> time_to_target(np.array([0.0, 10.0, 100.0]), np.array([0.0, 5.0, 5.0]), target=0.1)
        50.0
    """
    if regret[-1] > target * episodes[-1]:
        return float("inf")
    above = regret > target * episodes
    if not above.any():
        return 0.0
    j = int(np.flatnonzero(above)[-1])
    slope = (regret[j + 1] - regret[j]) / (episodes[j + 1] - episodes[j])
    return float((regret[j] - slope * episodes[j]) / (target - slope))
