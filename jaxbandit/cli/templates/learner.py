"""my-learner: a learner.

Check and try it:              python my_learner.py
In the paper's figure:         jaxbandit run prophet --learners my_learner.py
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxbandit as jb

NUM_POLICIES = 16


class State(NamedTuple):
    """What the learner carries from episode to episode: arrays, and nothing else."""

    policies: Any  # int32 [N, H, k+1]: the policies it chooses among
    sums: Any  # float [N]: total rewards of each
    counts: Any  # float [N]: episodes of each


def init(problem, constants, key):
    """Before the first episode. ``problem`` has horizon, width, num_actions and num_episodes.

    ``constants`` are the parameters, name -> array; ``key`` is another one for every seed.
    """
    shape = (NUM_POLICIES, problem.horizon, problem.width + 1)
    policies = jax.random.randint(key, shape, 0, problem.num_actions, jnp.int32)
    nothing = jnp.zeros(NUM_POLICIES, jnp.float32)
    return State(policies, nothing, nothing)


def act(state, key, constants):
    """The policy of the next episode: an action for every stage and level, int32 [H, k+1].

    ``key`` is new in every episode; this learner draws nothing.
    """
    mean = state.sums / jnp.maximum(state.counts, 1.0)
    untried = state.counts < constants["patience"]
    return state.policies[jnp.argmax(jnp.where(untried, jnp.inf, mean))]


def update(state, policy, feedback, constants):
    """The state after the episode. With bandit feedback, ``feedback.total`` is all there is."""
    mine = jnp.all(state.policies == policy[None], axis=(1, 2)).astype(jnp.float32)
    sums, counts = state.sums + mine * feedback.total, state.counts + mine
    return State(state.policies, sums, counts)


def my_learner(patience=100.0):
    """Tries some random policies ``patience`` times each, then keeps to the best."""
    params = {"patience": jnp.asarray(patience, jnp.float32)}  # jb.grid can vary it
    return jb.Learner(init, act, update, feedback="bandit", params=params, name="my-learner")


if "my-learner" not in jb.LEARNERS.names():
    jb.register_learner("my-learner", my_learner)  # now jb.make_learner("my-learner") works, too
LEARNERS = {"my-learner": my_learner()}  # what --learners adds to an experiment

if __name__ == "__main__":
    jb.testing.check_learner(my_learner())  # raises an error that says what is wrong
    print("my-learner passes the checks of the contract")
    mdp = jb.make_instance("prophet-uniform", horizon=6, capacity=2, num_values=5)
    print(jb.run(my_learner(), mdp, 10_000, jax.random.key(0)))
