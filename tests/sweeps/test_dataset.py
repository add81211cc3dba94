"""The Dataset of a sweep: instances of other sizes are padded, and the optimum is exact."""

from sweep_program import SIZES, configuration

import jaxbandit as jb


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
