"""One run of one learner, with its policies over time: a sweep of one lane, bit for bit."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxbandit import checks
from jaxbandit.engines import make_runner
from jaxbandit.engines.tables import optimal_value
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, single, validate
from jaxbandit.metrics import World, policy_gap
from jaxbandit.record import Recording, linear
from jaxbandit.status import spinner
from jaxbandit.sweeps.arguments import expand_learners, stack
from jaxbandit.sweeps.lanes import lane_keys
from jaxbandit.types import Array
from jaxbandit.xla.compilations import persistent_cache
from jaxbandit.xla.threefry import single_key

if TYPE_CHECKING:
    import xarray


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
    title = f"running {learner.name} for {total:,} episodes"
    with spinner(title, elsewhere=False) if progress else nullcontext():
        runner = make_runner(
            "episodes",
            grid.learner,
            stack([mdp]),
            np.asarray(jax.random.key_data(key))[None, None],
            total,
            points,
            metrics={POLICY: _policy, GAP: policy_gap},
        )
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


POLICY, GAP = "policy of the run", "gap of the run"
"""Names of metrics that no report has."""


def _policy(state: Any, world: World) -> Array:
    del state
    return world.policy
