"""One of a thing, to look at: one run, one episode, the hardness of one instance.

`run` is a sweep of one lane with its policies over time, bit for bit; `trace` plays an episode stage by stage; `hardness`
says what makes an instance hard. From outside: the names of ``__all__``. May import: engines, sweeps and planning.

Gaps are those of `planning.gaps`: what an action loses when everything after it is optimal. The
visitation ratio is what Lemmas 3.2 and 3.12 of the paper control: exploration visits a state with
probability Q_{l,i}, some policy visits it with probability q_{l,i}, and an error of size eps there can
hide behind exploration until it costs that policy q / Q times eps. Lemma 3.2 gives q / Q <= (A k)^(H-1)
for every instance (one factor A k per stage), which is where the constants of ExpRef come from; here q / Q
is computed for one instance.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import checks
from jaxbandit.engines import make_runner
from jaxbandit.engines.tables import optimal_value
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, plain, single, transition_kernel, validate
from jaxbandit.mdp.labels import labels_of, short
from jaxbandit.metrics import World, policy_gap
from jaxbandit.planning import evaluate, gaps, optimal, sample_episode, visitation
from jaxbandit.record import Recording, linear
from jaxbandit.status import spinner
from jaxbandit.sweeps.arguments import expand_learners, stack
from jaxbandit.sweeps.lanes import lane_keys
from jaxbandit.tabular import Table
from jaxbandit.theory import lai_robbins
from jaxbandit.types import Array
from jaxbandit.xla.compat import drawing, x64
from jaxbandit.xla.compilations import persistent_cache
from jaxbandit.xla.threefry import single_key

if TYPE_CHECKING:
    import xarray

__all__ = ["Episode", "Hardness", "Run", "hardness", "lane_key", "run", "trace"]

TIE = 1e-6
"""Gaps up to this count as ties: values lie in [0, 1] and instances hold float32 probabilities."""
POLICY, GAP = "policy of the run", "gap of the run"
"""Names of metrics that no report has."""


class Run(NamedTuple):
    """A run, recorded at P episodes.

    Fields:
        learner: its name.
        episode: int [P], the recorded episodes.
        regret: float [P], cumulative exact expected regret after each of them.
        reward: float [P], cumulative expected reward of the policies that were played: episode * Opt - regret.
        policies: int [P, H, k+1] or float [P, H, k+1, A], the policy after each recorded episode.
        gap: float [P], the regret of one episode of that policy.
        state: the learner's state after the last episode.
    """

    learner: str
    episode: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    policies: np.ndarray
    gap: np.ndarray
    state: Any

    def __repr__(self) -> str:
        """One line."""
        last = f"{int(self.episode[-1]):,} episodes, regret {self.regret[-1]:.4g}"
        return f"Run({self.learner!r}, {last}, {len(self.episode)} policies recorded)"

    def policy_at(self, episode: int) -> np.ndarray:
        """The policy after the first recorded episode that is not before ``episode``.

        Example: see `run`.
        """
        last = int(self.episode[-1])
        if not 1 <= episode <= last:
            raise ValueError(f"episode: {episode}; accepted: 1 to {last}")
        return self.policies[np.searchsorted(self.episode, episode)]

    def dataset(self, instance: str = "instance") -> xarray.Dataset:
        """The run as a Dataset of one learner, one instance and one seed, for `plot_regret`.

        Example: see `run`.
        """
        import xarray

        axes = ("learner", "instance", "seed", "episode", "stage", "level", "action")
        parts = {"regret": self.regret, "reward": self.reward, "gap": self.gap}
        variables = {
            name: (axes[: values.ndim + 3], values[None, None, None])
            for name, values in (parts | {"policy": self.policies}).items()
        }
        names = {"learner": [self.learner], "instance": [instance], "seed": [0]}
        return xarray.Dataset(variables, {**names, "episode": self.episode})


def lane_key(seed: int, instance: str, number: int) -> jax.Array:
    """The key of a lane of a sweep: fold_in(fold_in(key(seed), crc32(instance)), number).

    Args:
        seed: the sweep's.
        instance: the name of the instance in the sweep ("MDP" for one that was given without a name).
        number: of the seed.

    Example: see `run`.
    """
    words = lane_keys(seed, [("", instance, 0, checks.whole("number", number, at_least=0))])
    return jax.random.wrap_key_data(words[0, 0], impl="threefry2x32")


@persistent_cache()
def run(
    learner: Learner,
    mdp: MDP,
    num_episodes: int,
    key: Any,
    record: Recording = linear(200),  # noqa: B008  (a frozen value)
    progress: bool = True,
) -> Run:
    """Runs a learner once, episode by episode, and keeps its policies over time.

    With the key of a lane (`lane_key`) it is that lane of ``jb.sweep(..., engine="episodes")``, bit for bit.

    Args:
        learner: from `make_learner`, or your own.
        mdp: a single MDP.
        num_episodes: T.
        key: a typed key; everything random comes from it.
        record: at which episodes regret and policy are kept.
        progress: True shows a clock in terminals, where it takes seconds.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
        >>> once = jb.run(jb.make_learner("oracle"), mdp, 1000, jax.random.key(0))
        >>> once
        Run('oracle', 1,000 episodes, regret 0, 200 policies recorded)
        >>> once.policies.shape, float(jb.regret(mdp, once.policy_at(500))) < 1e-6
        ((200, 4, 3), True)
        >>> dict(once.dataset().sizes)["episode"]
        200
        >>> ucbvi = jb.make_learner("ucbvi")
        >>> swept = jb.sweep(ucbvi, {"I1": mdp}, 100, num_seeds=3, seed=7, progress=False)
        >>> third = jb.run(ucbvi, mdp, 100, jb.lane_key(7, "I1", 2))
        >>> bool((third.regret == swept["regret"].values[0, 0, 2]).all())
        True
    """
    total = checks.whole("num_episodes", num_episodes, at_most=checks.MOST_EPISODES)
    validate(single(mdp))
    checks.typed("learner", learner, Learner, "a Learner, as make_learner gives it")
    checks.typed("record", record, Recording, "a grid (jb.record.linear, log or explicit)")
    single_key(key)
    points = record.points(total)
    (grid,) = expand_learners({learner.name: learner}).values()
    words = np.asarray(jax.random.key_data(key))[None, None]
    metrics = {POLICY: _policy, GAP: policy_gap}
    title = f"running {learner.name} for {total:,} episodes"
    with spinner(title, elsewhere=False) if progress else nullcontext():
        given = (grid.learner, stack([mdp]), words, total, points)
        runner = make_runner("episodes", *given, metrics=metrics)
        carry = runner.start()
        while runner.episodes_done(carry) < total:
            carry = runner.step(carry)
        found = {name: values[0, 0] for name, values in runner.result(carry).items()}
    policies = found[POLICY]
    (tile,) = carry["tiles"]
    return Run(
        learner=learner.name,
        episode=points,
        regret=found["regret"],
        reward=points * optimal_value(mdp) - found["regret"],
        policies=policies.astype(np.int32 if policies.ndim == 3 else np.float32),
        gap=found[GAP],
        state=jax.tree.map(lambda x: np.asarray(x)[0], tile["state"]),
    )


def _policy(state: Any, world: World) -> Array:
    del state
    return world.policy


class Episode(NamedTuple):
    """An episode; prints as a table, and as one of HTML in notebooks.

    Fields:
        levels: int [H], the level visited at each stage.
        actions: int [H], the action played there.
        outcomes: int [H], the outcome that was drawn.
        rewards: float [H], what it paid.
        next_levels: int [H], where it led.
        head: names of the table's columns.
        rows: the table, as words.
        note: total and expectation, in words.
    """

    levels: np.ndarray
    actions: np.ndarray
    outcomes: np.ndarray
    rewards: np.ndarray
    next_levels: np.ndarray
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    @property
    def total(self) -> float:
        """The total reward."""
        return float(self.rewards.sum())

    def table(self) -> Table:
        """The stages as a table."""
        return Table(self.head, self.rows, right=range(len(self.head)), note=self.note)

    def __repr__(self) -> str:
        """The table."""
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().to("html")


def trace(mdp: MDP, policy: Array, key: Any) -> Episode:
    """Plays one episode of a policy and returns it as a table.

    Args:
        mdp: a single MDP.
        policy: actions, int [H, k+1], or action probabilities, float [H, k+1, A].
        key: a typed key; the same key gives the same episode.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=5)
        >>> value, policy = jb.optimal(mdp)
        >>> jb.trace(mdp, policy, jax.random.key(0))
        stage  capacity left  offered ...
    """
    single_key(key)
    expected = float(evaluate(plain(single(mdp)), policy))  # checks the policy, too
    with drawing():
        draws = np.asarray(jax.random.uniform(key, (mdp.horizon, 2)))
    played = sample_episode(mdp, policy, draws)
    levels, actions, outcomes, rewards, next_levels = played
    words, rows = labels_of(mdp), []
    for i, (level, action, outcome, reward, to) in enumerate(zip(*played, strict=True)):
        worth = words.paid(i, reward, to) if level else 0.0
        rows.append(
            [
                ("stage", str(i + 1)),
                (words.level, words.state(level)),
                *([("offered", words.offers[i][outcome])] if words.offers else []),
                # nothing can be done at level 0, so no action is shown there
                ("action", words.action(i, action) if level else "-"),
                ("reward", short(reward)),
                *([("worth", words.with_unit(worth))] if words.in_units else []),
                ("then", words.state(to)),
            ]
        )
    total = float(rewards.sum())
    seen, mean = short(total), short(expected)
    if words.in_units:
        seen += f" (worth {words.with_unit(words.total(total))})"
        mean += f" ({words.with_unit(words.total(expected))})"
    return Episode(
        levels=levels,
        actions=actions,
        outcomes=outcomes,
        rewards=rewards,
        next_levels=next_levels,
        head=tuple(name for name, _ in rows[0]),
        rows=tuple(tuple(cell for _, cell in row) for row in rows),
        note=f"total reward {seen}; the policy's mean is {mean}",
    )


class Hardness(NamedTuple):
    """What makes an instance hard; states are those of levels 1..k that some policy can visit.

    Fields:
        optimal_value: Opt from the start level.
        smallest_gap: of all actions that are not optimal, at states that can be visited; inf if there is none.
        inverse_gaps: the sum of 1 / gap over the same actions, which gap-dependent regret bounds are made of.
        visitation_ratio: max over states of q / Q with uniform exploration, as in ExpRef.
        ordered_visitation_ratio: the same with OrderedExpRef's exploration (uniform with probability k / (2H), else the
            action of largest rank); nan without a rank.
        visitation_bound: (A k)^(H-1), the ratio with uniform exploration that no instance of these sizes exceeds.
        num_states: states that some policy visits with positive probability.
        num_policies: deterministic policies on these states, A ** num_states: a whole number without limit.
        num_optimal_policies: those of them that play an optimal action at every state.
        lai_robbins: of a K-armed bandit (H = k = 1): no learner that is good on all of them has a regret below this
            times ln T as T grows (`jaxbandit.theory.lai_robbins`); nan for other MDPs.
    """

    optimal_value: float
    smallest_gap: float
    inverse_gaps: float
    visitation_ratio: float
    ordered_visitation_ratio: float
    visitation_bound: float
    num_states: int
    num_policies: int
    num_optimal_policies: int
    lai_robbins: float = np.nan

    def __str__(self) -> str:
        """One line per number."""
        width = max(map(len, self._fields))
        return "\n".join(
            f"{name:{width}}  {_words(value)}" for name, value in self._asdict().items()
        )


def _words(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and value < 10**9 else f"{float(value):.4g}"


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
        most = np.asarray(largest_visitation(exact))[:, 1:]
        there = most > 0

        def ratio(exploration: np.ndarray) -> float:
            visits = np.asarray(visitation(exact, jnp.asarray(exploration)))[:, 1:]
            return float((most[there] / visits[there]).max())

        value = float(optimal(exact)[0])
        lost = np.asarray(gaps(exact))[:, 1:][there]  # [states, A]
        uniform, ordered = np.full((H, k + 1, A), 1 / A), np.nan
        if mdp.rank is not None:
            top = np.asarray(mdp.rank).argmax(axis=-1)[..., None] == np.arange(A)
            share = min(1.0, k / (2 * H))
            ordered = ratio(share * uniform + (1 - share) * top)
        spread = ratio(uniform)
    positive, states = lost[lost > TIE], len(lost)
    return Hardness(
        optimal_value=value,
        smallest_gap=float(positive.min(initial=np.inf)),
        inverse_gaps=float((1 / positive).sum()),
        visitation_ratio=spread,
        ordered_visitation_ratio=ordered,
        visitation_bound=float(A * k) ** (H - 1),
        num_states=states,
        num_policies=A**states,
        num_optimal_policies=math.prod((lost <= TIE).sum(axis=1).tolist()),
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

    def back(reach: jax.Array, move: jax.Array) -> tuple[jax.Array, None]:
        # reach [k+1, targets]: the largest probability of the target from each level of this stage
        return jnp.max(jnp.einsum("las,st->lat", move, reach), axis=1), None

    there = jnp.eye(mdp.width + 1, dtype=mdp.prob.dtype)
    stages = (jax.lax.scan(back, there, moves[:i], reverse=True)[0] for i in range(mdp.horizon))
    return jnp.stack([reach[mdp.start] for reach in stages])
