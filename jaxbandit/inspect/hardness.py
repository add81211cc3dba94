"""How hard an instance is: gaps, how much exploration loses sight of states, how many policies.

Gaps are those of `planning.gaps`: what an action loses when everything after it is optimal. The
visitation ratio is what Lemmas 3.2 and 3.12 of the paper control: exploration visits a state with
probability Q_{l,i}, some policy visits it with probability q_{l,i}, and an error of size eps there can
hide behind exploration until it costs that policy q / Q times eps. Lemma 3.2 gives q / Q <= (A k)^(H-1)
for every instance (one factor A k per stage), which is where the constants of ExpRef come from; here q / Q
is computed for one instance.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.mdp import MDP, single, transition_kernel, validate
from jaxbandit.planning import gaps, optimal, visitation
from jaxbandit.theory import lai_robbins
from jaxbandit.xla.compat import x64

TIE = 1e-6
"""Gaps up to this count as ties: values lie in [0, 1] and instances hold float32 probabilities."""


class Hardness(NamedTuple):
    """What makes an instance hard; states are those of levels 1..k that some policy can visit."""

    optimal_value: float
    """Opt from the start level."""
    smallest_gap: float
    """Of all actions that are not optimal, at states that can be visited; inf if there is none."""
    inverse_gaps: float
    """The sum of 1 / gap over the same actions, which gap-dependent regret bounds are made of."""
    visitation_ratio: float
    """max over states of q / Q with uniform exploration, as in ExpRef."""
    ordered_visitation_ratio: float
    """The same with OrderedExpRef's exploration (uniform with probability k / (2H), else the action of
    largest rank); nan without a rank."""
    visitation_bound: float
    """(A k)^(H-1): the ratio with uniform exploration that no instance of these sizes exceeds."""
    num_states: int
    """States that some policy visits with positive probability."""
    num_policies: int
    """Deterministic policies on these states, A ** num_states: a whole number without limit."""
    num_optimal_policies: int
    """Those of them that play an optimal action at every state."""

    lai_robbins: float = np.nan
    """Of a K-armed bandit (H = k = 1): no learner that is good on all of them has a regret below this times ln T as T
    grows (`jaxbandit.theory.lai_robbins`); nan for other MDPs."""

    def __str__(self) -> str:
        """One line per number."""
        width = max(map(len, self._fields))
        return "\n".join(
            f"{name:{width}}  {_words(value)}" for name, value in self._asdict().items()
        )


def hardness(mdp: MDP) -> Hardness:
    """The numbers of `Hardness` for one instance, computed in float64.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> found = jb.hardness(mdp)
        >>> found.num_states, found.num_policies, round(found.smallest_gap, 4)
        (3, 27, 0.0556)
        >>> round(found.visitation_ratio, 4), found.visitation_bound      # 1 / (2/3)^2, and (3 x 1)^2
        (2.25, 9.0)
    """
    validate(single(mdp))
    H, k, A = mdp.horizon, mdp.width, mdp.num_actions
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(mdp.prob, jnp.float64), reward=jnp.asarray(mdp.reward, jnp.float64)
        )
        value = float(optimal(exact)[0])
        lost = np.asarray(gaps(exact))[:, 1:]
        most = np.asarray(largest_visitation(exact))[:, 1:]
        spread = np.full((H, k + 1, A), 1 / A)
        uniform = np.asarray(visitation(exact, jnp.asarray(spread)))[:, 1:]
        ordered = None
        if mdp.rank is not None:
            top = np.asarray(mdp.rank).argmax(axis=-1)[..., None] == np.arange(A)
            share = min(1.0, k / (2 * H))
            mixed = share * spread + (1 - share) * top
            ordered = np.asarray(visitation(exact, jnp.asarray(mixed)))[:, 1:]
    there = most > 0
    here = lost[there]  # [states, A]
    positive = here[here > TIE]
    states = int(there.sum())
    return Hardness(
        optimal_value=value,
        smallest_gap=float(positive.min()) if positive.size else np.inf,
        inverse_gaps=float((1 / positive).sum()),
        visitation_ratio=float((most[there] / uniform[there]).max()),
        ordered_visitation_ratio=(
            np.nan if ordered is None else float((most[there] / ordered[there]).max())
        ),
        visitation_bound=float(A * k) ** (H - 1),
        num_states=states,
        num_policies=A**states,
        num_optimal_policies=int(
            np.prod([int(n) for n in (here <= TIE).sum(axis=1)], dtype=object)
        ),
        lai_robbins=lai_robbins_of(mdp),
    )


def lai_robbins_of(mdp: MDP) -> float:
    """The Lai-Robbins constant of a K-armed bandit; nan for other MDPs.

    Example:
        >>> import jaxbandit as jb
        >>> f"{lai_robbins_of(jb.make_instance('bandit', means=[0.9, 0.8])):.3f}"
        '2.252'
    """
    if (mdp.horizon, mdp.width) != (1, 1):
        return np.nan
    prob, reward = (np.asarray(x, np.float64)[0, int(mdp.start)] for x in (mdp.prob, mdp.reward))
    return lai_robbins(values=reward, probabilities=prob)


@jax.jit
def largest_visitation(mdp: MDP) -> jax.Array:
    """q_{l,i}: the largest probability with which any policy visits level l of stage i, [H, k+1].

    For each state by backward induction over the stages before it, with reward 1 for being there.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.2f}" for x in largest_visitation(mdp)[1]]
        ['0.67', '1.00']
    """
    moves = transition_kernel(mdp)  # [H, k+1, A, k+1]
    levels = mdp.width + 1

    def back(reach: jax.Array, move: jax.Array) -> tuple[jax.Array, None]:
        # reach [k+1, targets]: the largest probability of the target from each level of this stage
        return jnp.max(jnp.einsum("las,st->lat", move, reach), axis=1), None

    rows = []
    for stage in range(mdp.horizon):
        reach, _ = jax.lax.scan(
            back, jnp.eye(levels, dtype=mdp.prob.dtype), moves[:stage], reverse=True
        )
        rows.append(reach[mdp.start])
    return jnp.stack(rows)


def _words(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and value < 10**9 else f"{float(value):.4g}"
