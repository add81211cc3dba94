"""Numbering the actions otherwise changes no law, except through ties and orders that a docstring names.

Every registered learner is in one of four classes: its regret has the same mean on a renumbered MDP (a z-test); its policy
after the same data is the renumbered one wherever there is no tie; its blocks and choices are the renumbered ones when
arms pay their exact means; or the numbers of its actions mean something.
"""

import importlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem
from jaxbandit.testing import play_episode

TIES = ("ucbvi", "ucbvi-doubling", "q-learning")
"""Deterministic learners under semi-bandit feedback: numbers decide ties."""
BLOCKS = ("expref", "ordered-expref", "expref-shared", "prophet-bandit")
MEANING = ("prophet-optimism", "ucb-policies", "fixed")
"""Learners whose actions have a meaning, or whose arms are numbered policies."""
NOISY = sorted(set(jb.LEARNERS.constructors) - set(TIES) - set(BLOCKS) - set(MEANING))
OF_ARMS = tuple(f"jaxbandit.learners.{name}" for name in ("bandits", "phased_bandits"))
"""Where learners are that play arms alone."""
I2 = jb.make_instance("prophet-random", key=jax.random.key(1), horizon=5, capacity=2, num_values=4)
FOUR_ARMS = jb.make_instance(
    "bandit",
    values=np.random.default_rng(1).uniform(size=(4, 5)),
    probabilities=np.random.default_rng(2).dirichlet(np.ones(5), 4),
)
"""Whose rewards are so different that means are not tied."""


def renumbered(mdp, order):
    """The MDP whose action j is action order[j] of this one."""
    fields = ("prob", "reward", "next_level", "rank")
    tables = {name: getattr(mdp, name) for name in fields if getattr(mdp, name) is not None}
    return mdp._replace(**{name: jnp.asarray(x)[:, :, order] for name, x in tables.items()})


def reached(mdp):
    """bool [H, k+1]: the states with a choice that some policy visits; at others all actions are equal."""
    H, levels, A = mdp.prob.shape[:3]
    found = np.asarray(jb.visitation(mdp, jnp.full((H, levels, A), 1 / A))) > 0
    found[:, 0] = False
    return found


@pytest.mark.parametrize("name", NOISY)
def test_regret_has_the_same_mean_with_the_actions_reversed(name):
    """100 episodes (20,000 with arms), 64 seeds: the means differ by at most 5 standard errors; false-alarm rate 6e-7, some more
    because regret is not normal. With Q clipped at 1 before the argmax, PSRL was 38 standard errors off, trajectory-ts 235."""
    mdp = FOUR_ARMS if jb.LEARNERS.constructors[name].__module__ in OF_ARMS else I2
    instances = {"as it is": mdp, "reversed": renumbered(mdp, [3, 2, 1, 0])}
    made = {name: jb.make_learner(name)}
    episodes = 20_000 if mdp is FOUR_ARMS else 100  # a round of all arms may be cut short
    ds = jb.sweep(
        made, instances, episodes, 64, engine="episodes", record=jb.record.linear(1), progress=False
    )
    one, other = ds["regret"].values[0, :, :, -1]
    error = np.sqrt(one.var(ddof=1) / one.size + other.var(ddof=1) / other.size)
    assert abs(one.mean() - other.mean()) <= 5 * error + 1e-4 * (1 + one.mean())


@pytest.mark.parametrize("name", TIES)
def test_without_ties_the_policy_is_renumbered(name):
    """After 400 episodes of random play, with a bonus too small to clip anything, no two Q are equal."""
    order = [2, 0, 1]
    mdp = jb.make_instance(
        "random-general", key=jax.random.key(3), horizon=3, width=2, num_actions=3
    )
    learner = jb.make_learner(name, bonus_scale=0.01)
    problem = Problem(3, 2, 3, 400)
    given = learner.constants(problem, learner.params)
    states = [learner.init(problem, given, None)] * 2
    update, random = jax.jit(learner.update), np.random.default_rng(0)
    for _ in range(400):
        policy = random.integers(0, 3, (3, 3)).astype(np.int32)
        seen = observe("semi-bandit", play_episode(mdp, policy, random))
        other = seen._replace(
            actions=jnp.asarray(np.argsort(order))[seen.actions].astype(jnp.int32)
        )
        states = [update(s, policy, x, given) for s, x in zip(states, (seen, other), strict=True)]
    one, other = (np.asarray(learner.act(s, jax.random.key(0), given))[:, 1:] for s in states)
    seen = reached(mdp)[:, 1:]
    np.testing.assert_array_equal(one[seen], np.asarray(order)[other][seen])


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_renumbered_when_arms_pay_their_means(name):
    """Ten stages of arms that pay exactly what they are worth: the same policies and as many episodes."""
    order, k = np.array([1, 2, 0]), 1 if name == "prophet-bandit" else 2
    mdp = jb.make_instance(
        "prophet-random", key=jax.random.key(2), horizon=3, capacity=k, num_values=3
    )
    form = jb.make_learner(name, preset="practical").blocks
    found = []
    for world in (mdp, renumbered(mdp, order)):
        learner = jb.make_learner(name, preset="practical")
        problem = Problem(3, k, 3, 10**6, rank=np.asarray(world.rank))
        given = jax.tree.map(jnp.asarray, form.constants(problem, learner.params))
        state = form.init(problem, given, None)
        value = jax.jit(jax.vmap(lambda policy, world=world: jb.evaluate(world, policy)))
        for _ in range(10):
            block = jax.jit(form.next_block)(state, given)
            arms = jnp.broadcast_to(block.policy, (len(block.rows), *block.policy.shape))
            arms = arms.at[:, block.stage].set(block.rows)
            totals = value(arms) * block.episodes.astype(jnp.float32)
            state = jax.jit(form.absorb)(state, block.episodes, totals, given)
            known = (
                reached(mdp) & (np.arange(3) != int(block.stage))[:, None]
            )  # its rows are in the arms
            found.append((np.asarray(block.policy)[known], int(block.episodes.sum())))
    for (policy, episodes), (other, as_many) in zip(found[:10], found[10:], strict=True):
        np.testing.assert_allclose(policy[..., order], other, atol=1e-6)
        assert episodes == as_many


@pytest.mark.parametrize("name", [*TIES, *BLOCKS, *MEANING[:-1]])
def test_docstrings_name_the_ties(name):
    text = importlib.import_module(jb.LEARNERS.constructors[name].__module__).__doc__
    assert re.search(r"[Tt]ies[^.;]* go to the first (action|arm)", " ".join(text.split()))
