"""The Dataset of a sweep: instances of other sizes are padded, and the optimum is exact."""

import jax
import numpy as np
import xarray as xr
from sweep_program import SIZES, configuration

import jaxbandit as jb
from jaxbandit.results.dataset import TEXTS, annotate, store_instances

SMALL = jb.make_instance("hard-general", theta=[0, 1], num_actions=2, gap=0.1)
LARGE = jb.make_instance("random-ordered", key=jax.random.key(0), horizon=4, width=3, num_actions=3)


def test_shapes_are_mixed_and_padded():
    instances = {
        "small": jb.make_instance("prophet-uniform", **SIZES),
        "large": jb.make_instance("prophet-uniform", horizon=4, capacity=3, num_values=3),
    }
    ucbvi = {"U": jb.make_learner("ucbvi")}
    dataset = jb.sweep(**configuration(learners=ucbvi, instances=instances, num_seeds=3))
    assert dataset["regret"].notnull().all()
    policy = dataset["final_policy"]
    assert dict(policy.sizes) == {"learner": 1, "instance": 2, "seed": 3, "stage": 4, "level": 4}
    assert policy.sel(instance="large").notnull().all()
    assert policy.sel(instance="small", stage=[1, 2, 3], level=[0, 1, 2]).notnull().all()
    assert policy.sel(instance="small", stage=4).isnull().all()
    assert policy.sel(instance="small", level=3).isnull().all()


def test_padding_is_nan_and_names_are_empty_without_labels():
    ds = store_instances(xr.Dataset(coords={"instance": ["s", "l"]}), {"s": SMALL, "l": LARGE})
    assert not "".join(ds["action_name"].values.ravel().tolist())
    assert ds["reward_scale"].values.tolist() == [1.0, 1.0]
    assert dict(ds.sizes) == {"instance": 2, "stage": 4, "level": 4, "action": 3, "outcome": 3}
    assert int(ds["mdp_prob"].sel(instance="s").notnull().sum()) == SMALL.prob.size
    assert bool(ds["mdp_rank"].sel(instance="s").isnull().all())
    np.testing.assert_array_equal(ds["mdp_reward"].sel(instance="l").values, LARGE.reward)
    assert ds["mdp_start"].values.tolist() == [1, 3]


def test_texts_of_a_user_stay():
    ds = xr.Dataset({"regret": ("episode", [1.0], {"units": "$"}), "my_own": ("episode", [1.0])})
    ds = annotate(ds)
    assert ds["regret"].attrs == {"long_name": TEXTS["regret"][0], "units": "$"}
    assert ds["my_own"].attrs == {"long_name": "my own", "units": "1"}
