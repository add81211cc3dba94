"""What the fuzz of the public names draws from: good values, odd values, and oracles in plain Python."""

import collections
import functools
import inspect
import math
import re
import warnings

import families
import jax
import numpy as np
import synthetic_sweep
from hypothesis import HealthCheck
from hypothesis import strategies as st

import jaxbandit as jb

Case = collections.namedtuple("Case", "name call arguments check")
"""The call, its arguments by name, and what must hold of the answer."""
RULES = {"deadline": None, "derandomize": True, "database": None,
         "suppress_health_check": list(HealthCheck)}  # fmt: skip
KEY = jax.random.key(3)
ODD = [
    None, True, "x", "", b"x", "a\0b", "\ud800", math.nan, math.inf, -math.inf, -1, 0, 0.5, -0.0, 1e39, 1e-45,
    2**31, 2**32, 2**63, 10**400, 1j, [], [1], [[1]], {}, (), object(), math.sin, np.float16(0.1), np.array([]),
    np.array([1.5, 2.5]), np.ones((2, 2), bool), np.ones((2, 3, 4)), [None], ["a"], [[1], [1, 2]], [2**70],
    np.int8(-3), np.array(7), jax.random.key(1), jax.random.split(jax.random.key(1)), range(3),
]  # fmt: skip
"""Values that few parameters accept."""


def odd():
    return st.sampled_from(ODD)


def sizes(low=1):
    return st.sampled_from([low, low + 1, np.int64(low + 1), float(low)])


def _rows(of, count=2):
    return st.lists(of, min_size=count, max_size=count)


TABLE = _rows(_rows(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 1e-3, 7.25])))
ROW = st.sampled_from([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.5, 0.4], [1.5, -0.5]])
KEYS = st.sampled_from([KEY, jax.random.key(2**32 - 1)])
ENDS = st.sampled_from([0.0, 0.5, 1.0])
BY_HAND = {
    "key": KEYS,
    "values": TABLE,
    "rewards": TABLE,
    "probabilities": _rows(ROW),
    "means": st.sampled_from([[0.1, 0.9], [0.5], [1, 0, 0.5]]),
    "costs": _rows(_rows(st.sampled_from([0, 1, 2, 7, 10**12, 0.5]))),
    "demand": ROW,
    "arrivals": ROW,
    "fares": st.sampled_from([[2, 1], [3.0], [-1]]),
    "rows": st.sampled_from([["S+"], ("S.", "-#"), ["SS"], ["S"]]),
    "low": ENDS,
    "high": ENDS,
    "gap": st.sampled_from([0, 0.25, 0.5, 0.1, 0.6, None]),
    "theta": st.sampled_from([[0, 1], [1, 0], [0], [2, 2], None]),
    "down_stages": st.sampled_from([[1], [1, 2], [2, 1], [3], None]),
    "down_actions": st.sampled_from([[1], [1, 2], [1, 1], None]),
    "num_downs": st.sampled_from([None, 1, 2]),
    "num_episodes": st.sampled_from([None, 100, 1e6]),
    "value_scale": st.sampled_from([None, 1.0, 7.25, 100, 0.5]),
    "reward_scale": st.sampled_from([None, 10.0, 1.0]),
    "budget": sizes(0),
    "num_values": sizes(2),
}
"""Parameters of instances whose values belong together, or whose range is not data."""


def of_specs(constructor, known=None, default=None):
    """A strategy for every parameter of a constructor: ``known``, or what its spec calls good, or the default."""
    specs, known = getattr(constructor, "specs", {}), known or {}
    names = inspect.signature(constructor).parameters
    good = {name: st.sampled_from(spec.good()) for name, spec in specs.items()}
    return {name: known.get(name, good.get(name, default)) for name in names}


def of_an_instance(name, chance):
    """Every second one of the parameters that may be None is left out; sizes are given, and small."""
    constructor = jb.INSTANCES.constructors[name]
    parameters = inspect.signature(constructor).parameters.values()
    given = {p.name for p in parameters if p.default is not None or chance.random() < 0.5}
    return {p: s for p, s in of_specs(constructor, BY_HAND, sizes()).items() if p in given}


@functools.cache
def pool():
    """Instances for planning, with some that are not."""
    good = [families.tiny(name) for name in ("random-ordered", "prophet", "hard-general")]
    wrong = good[0]._replace(prob=good[0].prob * 2)
    return [*good, wrong, good[1]._replace(start=np.int32(7))]


@functools.cache
def sweep_results():
    return synthetic_sweep.synthetic_sweep(instances=("I1", "I2/0"), num_seeds=3, num_points=4)


def policies(mdp, seed):
    """Policies of an MDP, deterministic or not, some of them impossible."""
    rng = np.random.default_rng(seed)
    states = (mdp.horizon, mdp.width + 1)
    actions = rng.integers(0, mdp.num_actions, states)
    randomised = families.random_policy(mdp, seed)
    return [
        actions,
        actions.tolist(),
        randomised,
        randomised.astype(np.float64),
        actions + mdp.num_actions,
        -1 - actions,
        randomised * 2,
        randomised - 0.5,
        np.where(randomised > 0.3, np.nan, randomised),
        randomised[:1] if mdp.horizon > 1 else randomised[0],
        actions.astype(float),
    ][seed % 11]


def is_policy(mdp, policy):
    array = np.asarray(policy)
    states = (mdp.horizon, mdp.width + 1)
    if array.dtype.kind in "iu":
        return array.shape == states and ((array >= 0) & (array < mdp.num_actions)).all()
    if array.dtype.kind != "f" or array.shape != (*states, mdp.num_actions):
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(-1), 1, atol=1e-5))


def value_of(mdp, policy=None):
    """Of a policy, or of the best one."""
    return families.tails(mdp, policy)[0, int(mdp.start)]


def check_instance(mdp):
    """A right instance: valid, and its optimal value is that of trying everything."""
    assert jb.validate(mdp) is mdp
    value = float(jb.optimal(jb.mdp.plain(mdp))[0])
    np.testing.assert_allclose(value, value_of(mdp), rtol=1e-4, atol=1e-6)


def drawn(draw, strategies, odds=0.2, specs=None):
    """A value for every parameter; now and then an odd one, of any kind or what its spec calls odd."""
    chance, specs = evenly(draw), specs or {}

    def odd_of(name):
        return odd() | st.sampled_from(specs[name].odd()) if name in specs else odd()

    return {
        name: draw(odd_of(name) if chance.random() < odds else strategy)
        for name, strategy in strategies.items()
    }


def evenly(draw):
    """Random numbers as they are meant: hypothesis alone would prefer the ends of a range."""
    return draw(st.randoms(use_true_random=True))


def outcome(case):
    """How the call ended: "right", or the kind of error, which must name an argument."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = case.call(**case.arguments)
    except (ValueError, TypeError, FileNotFoundError, FileExistsError) as caught:
        error = caught
    else:
        assert case.check(answer) is not False, f"{case.name}{case.arguments}"
        return "right"
    words = {*case.arguments, "MDP", "mdp", "instance", "learner", "name", "values", "record"}
    constructors = {**jb.INSTANCES.constructors, **jb.LEARNERS.constructors}
    called = constructors.get(case.name) or (case.name in jb.__all__ and getattr(jb, case.name))
    if inspect.isfunction(called):  # an argument that was not given may be the one that is needed
        words |= {*inspect.signature(called).parameters}
    named = set(re.findall(r"\w+", str(error))) & words
    assert named, f"{case.name}{case.arguments}: {error!r} names no argument"
    told = any(word in str(error) for word in ("accepted", "must", "needs", "give another"))
    assert told, f"{case.name}{case.arguments}: {error!r} does not say what is accepted"
    return type(error).__name__
