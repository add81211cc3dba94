"""One run of one learner, with its policies over time: to look at, not to measure with.

The loop is the contract and nothing else: act, play, observe, update. A sweep runs many of these
side by side, much faster, and gives the same numbers in law.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import checks, planning
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learner import Learner, Problem, check_contract, make_constants
from jaxbandit.learner.fitting import (
    check_first_state,
    check_steps,
    in_32_bits,
    is_policy,
    named,
    wrong_policy,
)
from jaxbandit.mdp import MDP, single, transition_kernel, validate
from jaxbandit.record import Recording, linear
from jaxbandit.types import Array
from jaxbandit.waiting import waiting
from jaxbandit.xla.compat import drawing, x64
from jaxbandit.xla.lowering import fresh_traces
from jaxbandit.xla.threefry import single_key

if TYPE_CHECKING:
    import xarray

MOST_EPISODES = 2**31 - 1


class Run(NamedTuple):
    """A run, recorded at P episodes.

    Fields:
        learner: its name.
        episode: int [P], the recorded episodes.
        regret: float [P], cumulative exact expected regret after each of them.
        reward: float [P], cumulative reward that was collected.
        policies: int [P, H, k+1] or float [P, H, k+1, A], the policy of each recorded episode.
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
        """The policy of the first recorded episode that is not before ``episode``.

        Example: see `run`.
        """
        later = np.flatnonzero(self.episode >= episode)
        if not later.size or episode < 1:
            last = int(self.episode[-1])
            raise ValueError(f"episode: {episode}; accepted: 1 to {last}")
        return self.policies[later[0]]

    def dataset(self, instance: str = "instance") -> xarray.Dataset:
        """The run as a Dataset of one learner, one instance and one seed, for `plot_regret`.

        Example: see `run`.
        """
        import xarray

        lane = ("learner", "instance", "seed", "episode")
        states = ("stage", "level", "action")[: self.policies.ndim - 1]
        variables = {
            "regret": (lane, self.regret[None, None, None]),
            "reward": (lane, self.reward[None, None, None]),
            "gap": (lane, self.gap[None, None, None]),
            "policy": ((*lane, *states), self.policies[None, None, None]),
        }
        names = {"learner": [self.learner], "instance": [instance], "seed": [0]}
        return xarray.Dataset(variables, {**names, "episode": self.episode})


def run(
    learner: Learner,
    mdp: MDP,
    num_episodes: int,
    key: Any,
    record: Recording = linear(200),  # noqa: B008  (a frozen value)
    progress: bool = True,
) -> Run:
    """Runs a learner once and keeps its policies over time.

    Args:
        learner: from `make_learner`, or your own.
        mdp: a single MDP.
        num_episodes: T. Episodes are simulated one by one, some 10^5 a second for small MDPs.
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
    """
    total = checks.whole("num_episodes", num_episodes, at_most=MOST_EPISODES)
    validate(single(mdp))
    check_contract(checks.typed("learner", learner, Learner, "a Learner, as make_learner gives it"))
    checks.typed("record", record, Recording, "a grid (jb.record.linear, log or explicit)")
    single_key(key)
    points = record.points(total)
    words = f"running {learner.name} for {total:,} episodes"
    with waiting(words, elsewhere=False) if progress else nullcontext(), drawing(), fresh_traces():
        kept, state = _run(learner, mdp, points, key)
    regrets, rewards, policies, gaps = (np.asarray(column) for column in zip(*kept, strict=True))
    return Run(
        learner=learner.name,
        episode=points,
        regret=regrets,
        reward=rewards,
        policies=policies,
        gap=gaps,
        state=state,
    )


def _run(
    learner: Learner, mdp: MDP, points: np.ndarray, key: Any
) -> tuple[list[tuple[Any, ...]], Any]:
    """Regret, reward, policy and gap at every point, and the last state."""
    rules = learner.rules
    world, best = _world(mdp)
    constants, state = _prepare(rules, learner, mdp, best, int(points[-1]), key)
    regret, reward, done = 0.0, 0.0, 0
    stretch = jax.jit(partial(_stretch, rules))
    kept: list[tuple[Any, ...]] = []
    for point in points:
        state, policy, sums, gap, wrong = stretch(world, constants, state, key, done, int(point))
        if int(wrong[0]) > 0:
            raise wrong_policy(rules.name, np.asarray(wrong[1]), mdp.num_actions, int(wrong[0]))
        # the sums of a stretch are short, those of the run are kept in float64
        regret, reward, done = regret + float(sums[0]), reward + float(sums[1]), int(point)
        kept.append((regret, reward, np.asarray(policy), float(gap)))
    return kept, state


class _PlainWorld(NamedTuple):
    """What the environment knows; the learner never sees it."""

    mdp: MDP
    passed: Array
    """float32 [H, k+1, A, M]: cumulative probabilities."""
    gap: Array
    """float32 [H, k+1, A]: Opt_{l,i} - Q*_{l,i}(a)."""
    transition: Array
    """float32 [H, k+1, A, k+1]."""


def _world(mdp: MDP) -> tuple[_PlainWorld, np.ndarray]:
    """The tables, and the optimal policy; computed in float64, so that optimal actions lose 0."""
    with x64():
        prob, reward = (jnp.asarray(np.asarray(x, np.float64)) for x in (mdp.prob, mdp.reward))
        exact = mdp._replace(prob=prob, reward=reward)
        gap, kernel = np.asarray(planning.gaps(exact)), np.asarray(transition_kernel(exact))
        best = np.asarray(planning.optimal(exact)[1])
    single = (np.asarray(x, np.float32) for x in (np.cumsum(np.asarray(prob), -1), gap, kernel))
    tables = mdp._replace(
        prob=np.asarray(mdp.prob, np.float32), reward=np.asarray(mdp.reward, np.float32)
    )
    return _PlainWorld(tables, *map(jnp.asarray, single)), best


def _prepare(
    rules: Any, learner: Learner, mdp: MDP, best: Array, total: int, key: Any
) -> tuple[Any, Any]:
    """Constants and first state, with one trailing lane if the learner wants lanes; both checked."""
    params = learner.params
    if learner.check is not None:
        try:
            learner.check({name: np.asarray(value)[()] for name, value in params.items()})
        except ValueError as error:
            raise ValueError(f"learner {rules.name!r}: {error}") from None
    if "rank" in rules.requires and mdp.rank is None:
        raise ValueError(
            f"learner {rules.name!r} needs an ordered MDP (one with a rank); this has none"
        )
    problem = Problem(
        horizon=mdp.horizon,
        width=mdp.width,
        num_actions=mdp.num_actions,
        num_episodes=total,
        rank=mdp.rank if "rank" in rules.requires else None,
        optimal_policy=jnp.asarray(best) if "optimal_policy" in rules.requires else None,
    )
    with named(rules.name, "constants"):
        constants = jax.tree.map(jnp.asarray, make_constants(rules, problem, params))
    problem = replace(problem, num_episodes=jnp.float32(total))
    with named(rules.name, "init"):
        state = jax.tree.map(
            jnp.asarray,
            check_first_state(rules.init(problem, constants, jax.random.fold_in(key, 3))),
        )
    check_steps(rules, (mdp.horizon, mdp.width, mdp.num_actions), constants, state)
    return constants, state


def _stretch(rules, world: _PlainWorld, constants, state, key, first, last):
    """Episodes first..last-1: the state, the last policy, the sums of regret and reward, its gap.

    And the number of the first episode (from 1; 0: none) whose policy is none, with that policy.
    """
    environment, private = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)

    def act(state, t):
        own = jax.random.fold_in(private, t)
        return jnp.asarray(in_32_bits(rules.act(state, own, constants)))

    def update(state, policy, episode, word):
        return rules.update(state, policy, observe(rules.feedback, episode, word), constants)

    def one(t, carry):
        state, _, (regret, lost), (reward, missed), _, wrong = carry
        policy = act(state, t)
        fresh = (wrong[0] == 0) & ~jnp.all(is_policy(policy, world.mdp.num_actions))
        wrong = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), (t + 1, policy), wrong)
        chance = jax.random.fold_in(environment, t)
        draws = jax.random.uniform(chance, (world.mdp.horizon, 2))
        episode = _play(world, policy, draws)
        gap = _regret(world, policy)
        # The coin of one-bit feedback has a key of its own.
        word = jax.random.bits(jax.random.fold_in(chance, 0), dtype=jnp.uint32)
        state = update(state, policy, episode, word)
        earned = jnp.sum(episode.rewards)
        return state, policy, _add(regret, lost, gap), _add(reward, missed, earned), gap, wrong

    zero = jnp.zeros((), jnp.float32)
    policy = jax.tree.map(jnp.zeros_like, act(state, first))
    carry = (state, policy, (zero, zero), (zero, zero), zero, (jnp.zeros_like(first), policy))
    state, policy, regret, reward, gap, wrong = jax.lax.fori_loop(first, last, one, carry)
    return state, policy, (regret[0], reward[0]), gap, wrong


def _add(total: Array, lost: Array, x: Array) -> tuple[Array, Array]:
    """Adds and keeps what rounding drops (Kahan)."""
    wanted = x - lost
    after = total + wanted
    return after, (after - total) - wanted


def _play(world: _PlainWorld, policy: Array, draws: Array) -> Trajectory:
    mdp = world.mdp

    def step(level, x):
        i, row, draw = x
        if row.ndim == 2:
            action = _pick(jnp.cumsum(row[level]), draw[0])
        else:
            action = row[level].astype(jnp.int32)  # of any integer type
        place = (i, level, action)
        outcome = _pick(world.passed[place], draw[1])
        following = mdp.next_level[place][outcome]
        return following, (level, action, mdp.reward[place][outcome], following)

    stages = jnp.arange(mdp.horizon, dtype=jnp.int32)
    _, steps = jax.lax.scan(step, jnp.asarray(mdp.start, jnp.int32), (stages, policy, draws))
    return Trajectory(*steps)


def _pick(passed: Array, draw: Array) -> Array:
    """The first index whose cumulative weight exceeds the draw's share of all."""
    target = draw * passed[-1]
    return jnp.argmax(target < passed).astype(jnp.int32)


def _regret(world: _PlainWorld, policy: Array) -> Array:
    """Exact regret of one episode: the expected sum of gaps along the policy's path."""
    choice = planning.action_probabilities(policy, world.mdp.num_actions, jnp.float32)

    def back(tail, x):
        gap, move, chosen = x
        ahead = jnp.sum(move * tail[None, None, :], axis=-1)
        return jnp.sum(chosen * (gap + ahead), axis=-1), None

    last = jnp.zeros(world.mdp.width + 1, jnp.float32)
    tail, _ = jax.lax.scan(back, last, (world.gap, world.transition, choice), reverse=True)
    return tail[world.mdp.start]
