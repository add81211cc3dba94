"""Tests of a learner's functions in every variant in which they may be called, for your own test suite.

`chex.variants` runs one test several times: compiled, as plain Python, with its arguments on a device. A
learner that passes in one variant alone has a Python branch on a traced value, or keeps something outside
its state.
"""

from __future__ import annotations

from typing import Any, ClassVar

import chex
import jax
import numpy as np

from jaxbandit.feedback import observe
from jaxbandit.instances import make_instance
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.testing.conformance import COIN, EPISODES, apart, begin, strong, traced_once
from jaxbandit.testing.lanes import play_episode
from jaxbandit.testing.summary import Notes


class LearnerTests(chex.TestCase):
    """A test case for a learner: subclass it and name the learner; pytest and unittest find its tests.

    `check_learner` checks more, in one call; this shows every variant as a test of its own, and tests of
    yours may stand beside them and use ``@chex.variants`` in the same way.

    Example:
        >>> import unittest
        >>> import jaxbandit as jb
        >>> class TestMine(jb.testing.LearnerTests):
        ...     learner = jb.make_learner("uniform")
        >>> suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestMine)
        >>> result = unittest.TestResult()
        >>> _ = suite.run(result)
        >>> result.testsRun, result.wasSuccessful()
        (4, True)
    """

    learner: ClassVar[Learner | None] = None
    """The learner that is tested; without one, every test is skipped."""
    mdp: ClassVar[MDP | None] = None
    """Where it is run; by default an ordered MDP of 3 stages, 2 levels and 2 actions."""
    num_episodes: ClassVar[int] = 48
    """T that the learner is told; `EPISODES` of them are played."""

    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test_act_and_update_agree(self) -> None:
        """The policies and states of a run are those of the functions called as they are, to 1e-5."""
        learner = self._learner()
        plain = learner
        same = self._run(plain.act, plain.update)
        found = self._run(self.variant(plain.act), self.variant(plain.update))
        for t, (one, other) in enumerate(zip(same, found, strict=True)):
            leaf = apart(other, one)
            if leaf is not None:
                raise AssertionError(f"learner {learner.name!r}: {leaf} after episode {t + 1}")

    def test_one_trace_serves_the_run(self) -> None:
        """act and update are traced once, whatever the episode (`chex.assert_max_traces`)."""
        plain = self._learner()
        self._run(traced_once(plain.act, "act"), traced_once(plain.update, "update"))

    def _learner(self) -> Learner:
        if self.learner is None:
            self.skipTest("learner: None; accepted: a jb.Learner, in a subclass")
        return self.learner  # type: ignore[return-value]

    def _run(self, act: Any, update: Any) -> list[Any]:
        """(policy, state) of a few episodes."""
        learner, mdp = self._learner(), self.mdp
        if mdp is None:
            sizes = {"horizon": 3, "width": 2, "num_actions": 2}
            mdp = make_instance("random-ordered", key=jax.random.key(0), **sizes)
        notes = Notes(str(learner.name), verbose=False)
        state, constants, _ = begin(notes, learner, mdp, self.num_episodes)
        key, random = jax.random.key(0), np.random.default_rng(0)
        found = []
        for t in range(EPISODES):
            state = strong(state)
            policy = act(state, jax.random.fold_in(key, t), constants)
            shown = observe(learner.feedback, play_episode(mdp, np.asarray(policy), random), COIN)
            state = update(state, policy, shown, constants)
            found.append((policy, state))
        return found
