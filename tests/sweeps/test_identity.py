"""What the numbers of a lane depend on, and nothing else."""

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.sweeps.identity import bits_of, digest

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)


def test_the_digest_of_an_instance_sees_every_array_and_no_label():
    assert digest(MDP) == digest(jb.label(MDP, unit="$"))
    others = [
        MDP._replace(prob=np.asarray(MDP.prob, np.float64)),
        MDP._replace(reward=np.asarray(MDP.reward) / 2),
        MDP._replace(rank=None),
        MDP._replace(start=np.int32(0)),
    ]
    assert len({digest(mdp) for mdp in [MDP, *others]}) == 5


def test_bits_name_what_last_digits_depend_on(monkeypatch):
    here = bits_of(jax.devices()[0])
    assert here["jax"] == jax.__version__
    with jax.default_matmul_precision("highest"), jax.numpy_rank_promotion("warn"):
        assert bits_of(jax.devices()[0]) == {**here, "default_matmul_precision": "highest"}
    monkeypatch.setenv("XLA_FLAGS", "--b --a")
    assert bits_of(jax.devices()[0]) == {**here, "flags": "--a --b"}
