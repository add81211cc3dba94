"""The small speed table and the number of lanes from which a device pays."""

import jax

from jaxbandit.doctor import speed


def test_a_row_has_times_of_a_step_and_of_a_lane():
    row = speed.measure(jax.devices()[0], num_episodes=64)
    assert row["lanes"] % 16 == 0
    assert row["us_per_step"] >= 0
    assert row["us_per_lane"] == row["us_per_step"] / row["lanes"]
    assert row["device"].startswith("cpu")


def test_a_device_pays_where_its_step_is_shorter_than_the_lanes_of_the_cpu():
    gpu, cpu = {"us_per_step": 30.0}, {"us_per_lane": 0.29}
    lanes = speed.break_even(gpu, cpu)
    assert (lanes - 1) * cpu["us_per_lane"] < gpu["us_per_step"] <= lanes * cpu["us_per_lane"]
