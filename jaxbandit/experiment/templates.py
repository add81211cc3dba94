"""Files to start from: a learner, an instance, an experiment of one's own, each of which runs."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from jaxbandit.files import write_atomically

LEARNER = '''"""NAME: a learner.

Check and try it:              python FILE
In the paper's figure:         jaxbandit run prophet --learners FILE
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
    """Before the first episode. ``problem`` has the sizes horizon, width, num_actions and T.

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
    return state._replace(
        sums=state.sums + mine * feedback.total,
        counts=state.counts + mine,
    )


def FUNCTION(patience=100.0):
    """Tries some random policies ``patience`` times each, then keeps to the best."""
    params = {"patience": jnp.asarray(patience, jnp.float32)}  # jb.grid can vary it
    return jb.Learner(init, act, update, feedback="bandit", params=params, name="NAME")


if "NAME" not in jb.LEARNERS.names():
    jb.register_learner("NAME", FUNCTION)  # now jb.make_learner("NAME") works, too
LEARNERS = {"NAME": FUNCTION()}  # what --learners adds to an experiment

if __name__ == "__main__":
    jb.testing.check_learner(FUNCTION())  # raises an error that says what is wrong
    print("NAME passes the checks of the contract")
    mdp = jb.make_instance("prophet-uniform", horizon=6, capacity=2, num_values=5)
    print(jb.run(FUNCTION(), mdp, 10_000, jax.random.key(0)))
'''

INSTANCE = '''"""NAME: an instance.

Look at it:                    python FILE
In a sweep:                    jb.sweep(learners={...}, instances={"NAME": FUNCTION()}, ...)
"""

import jax
import jax.numpy as jnp

import jaxbandit as jb


def FUNCTION(horizon=6, shelf=3):
    """Selling from a shelf: a low price surely sells one item, a high price sells half of the time.

    An MDP is a table of outcomes: in stage i, at level l, action a has outcome m with probability
    prob[i, l, a, m], which pays reward[i, l, a, m] and leads to level next_level[i, l, a, m]. Level
    0 means that nothing is left: it pays nothing and is never left. No episode may pay more than 1.
    """
    low, high = 0.5 / shelf, 1.0 / shelf
    sold_at_low = [1.0, 0.0]  # outcomes: sold, not sold
    sold_at_high = [0.5, 0.5]
    shape = (horizon, shelf + 1, 2, 2)  # [H, k+1, A, M]
    prob = jnp.broadcast_to(jnp.asarray([sold_at_low, sold_at_high]), shape)
    paid = jnp.broadcast_to(jnp.asarray([[low, 0.0], [high, 0.0]]), shape)
    level = jnp.arange(shelf + 1, dtype=jnp.int32)[None, :, None, None]
    sold = jnp.asarray([1, 0], jnp.int32)[None, None, None, :]
    mdp = jb.MDP(
        prob=prob,
        reward=jnp.where(level > 0, paid, 0.0),
        next_level=jnp.broadcast_to(jnp.maximum(level - sold, 0), shape),
        # the order that OrderedExpRef may know: the larger, the more likely to stay at the level
        rank=jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32), shape[:3]),
        start=jnp.asarray(shelf, jnp.int32),
    )
    names = {"actions": ["low price", "high price"], "offers": ["sold", "not sold"]}
    return jb.label(jb.validate(mdp), unit="$", scale=100.0 * shelf, level="items left", **names)


if "NAME" not in jb.INSTANCES.names():
    jb.register_instance("NAME", FUNCTION)  # now jb.make_instance("NAME") works, too

if __name__ == "__main__":
    mdp = FUNCTION()
    value, policy = jb.optimal(mdp)
    print(mdp, "optimal value", float(value))
    print(jb.trace(mdp, policy, jax.random.key(0)))
'''

EXPERIMENT = '''"""NAME: UCB-VI against random policies on one prophet problem.

The first paragraph is what `jaxbandit list` shows; say here what the experiment is about.

Run it:                        jaxbandit run FILE
"""

import jaxbandit as jb
from jaxbandit.experiment import Experiment


def sweeps(options):
    """Label -> arguments of jb.sweep; each becomes a file LABEL.nc. Nothing is run here."""
    learners = {
        "UCB-VI": jb.make_learner("ucbvi", preset="practical"),
        "uniform": jb.make_learner("uniform"),
    }
    mdp = jb.make_instance("prophet-uniform", horizon=6, capacity=2, num_values=5)
    return {
        "regret": {
            "learners": learners,
            "instances": {"I1": mdp},
            "num_episodes": options.choose_episodes(5_000, full=200_000),
            "num_seeds": options.choose_seeds(8, full=32),
        }
    }


def figures(datasets, options):
    """File name -> figure; datasets by label."""
    return {"regret": jb.plot_regret(datasets["regret"])}


EXPERIMENT = Experiment(
    "NAME",
    __doc__,
    sweeps,
    figures,
    outputs={"regret.png": "cumulative regret against episodes"},
    takes="a few seconds",
)
'''

TEMPLATES = {"learner": LEARNER, "instance": INSTANCE, "experiment": EXPERIMENT}


def write_template(
    what: str, name: str, out: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Path:
    """Writes a commented file that runs as it stands, and returns its path.

    Args:
        what: "learner", "instance" or "experiment".
        name: its name, such as "my-learner".
        out: the file; by default my_learner.py.
        overwrite: replace it if it exists.

    Example:
        >>> import tempfile
        >>> write_template("learner", "my-learner", tempfile.mkdtemp() + "/mine.py").name
        'mine.py'
        >>> write_template("learner", "2 fast")
        Traceback (most recent call last):
        ...
        ValueError: name: '2 fast'; accepted: letters, digits, - and _, beginning with a letter
    """
    if what not in TEMPLATES:
        raise ValueError(f"what: {what!r}; accepted: {', '.join(TEMPLATES)}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or keyword.iskeyword(name):
        raise ValueError(
            f"name: {name!r}; accepted: letters, digits, - and _, beginning with a letter"
        )
    function = name.replace("-", "_").lower()
    path = Path(out) if out is not None else Path(f"{function}.py")
    if path.suffix != ".py":
        raise ValueError(f"out: {path}; accepted: a file name that ends in .py")
    if path.exists() and not overwrite:
        raise FileExistsError(f"out: {path} exists; give another --out, or --overwrite")
    text = TEMPLATES[what].replace("NUM_POLICIES", "\0")  # the only longer word with a NAME in it
    path.parent.mkdir(parents=True, exist_ok=True)
    for word, value in (("FUNCTION", function), ("FILE", str(path)), ("NAME", name)):
        text = re.sub(rf"\b{word}\b", value, text)
    write_atomically(path, text.replace("\0", "NUM_POLICIES").encode())
    return path
