"""What runs together: groups, devices and how many tiles at once."""

import jax
import pytest

import jaxbandit as jb
from jaxbandit.sweeps.groups import choose_devices

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


def groups(learners, instances, **how):
    plan = jb.sweep(learners, instances, 10, 1, dry_run=True, **how)
    return [(list(group.grids), group.engine, list(group.instances)) for group in plan.groups]


def test_a_group_is_one_program_on_instances_of_one_size():
    ucbvi = jb.make_learner("ucbvi")
    learners = {"a": ucbvi, "b": jb.grid(ucbvi, bonus_scale=[0.1]), "E": jb.make_learner("expref")}
    instances = {
        "I1": jb.make_instance("prophet-uniform", **SIZES),
        "wide": jb.make_instance("prophet-uniform", **{**SIZES, "capacity": 2}),
        "I2": jb.make_instance("prophet-random", key=jax.random.key(0), **SIZES),
    }
    found = groups(learners, instances)
    assert (["a", "b"], "episodes", ["I1", "I2"]) in found
    assert (["a", "b"], "episodes", ["wide"]) in found
    assert {engine for names, engine, _ in found if names == ["E"]} == {"blocks"}
    assert {engine for _, engine, _ in groups(learners, instances, engine="episodes")} == {
        "episodes"
    }


def test_devices_of_a_cpu_are_cores():
    local, workers = choose_devices(None)
    assert local == jax.local_devices()
    assert choose_devices(1)[1] == 1
    assert choose_devices(local) == (local, len(local))
    for wrong in (0, workers + 1, True, "2", []):
        with pytest.raises(ValueError, match=r"devices: .*accepted: "):
            choose_devices(wrong)
