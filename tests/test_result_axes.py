"""What is no result is refused before a number is made of it; parts of results are results."""

import numpy as np
import pytest
from synthetic_sweep import synthetic_sweep

import jaxbandit as jb
from jaxbandit.results.axes import check_axes, whole

DS = synthetic_sweep(instances=("I1", "I2/0"), num_seeds=4, num_points=4)
FIRST = str(DS["learner"].values[0])
USERS = {
    "compare": jb.stats.compare,
    "final_table": jb.stats.final_table,
    "profiles": lambda ds: jb.stats.performance_profiles(ds, num_resamples=20),
    "improvement": lambda ds: jb.stats.probability_of_improvement(ds, num_resamples=20),
    "band": lambda ds: jb.stats.regret_band(ds, FIRST, "I1"),
    "families": jb.stats.families,
    "plot_panels": jb.plot_panels,
    "plot_final": jb.plot_final,
}


def names(ds, **coords):
    return ds.assign_coords({name: list(values) for name, values in coords.items()})


WRONG = {
    "seed 0 twice": lambda ds: ds.isel(seed=[0, 1, 2, 3, 0, 1, 2, 3]),
    "learner 'a' twice": lambda ds: names(ds, learner="aab"),
    "instance 'a' twice": lambda ds: names(ds, instance="aa"),
    "learner 1; accepted: names": lambda ds: names(ds, learner=[1, 2, 3]),
    "learners without names": lambda ds: ds.drop_vars("learner"),
    "no seed; accepted: at least": lambda ds: ds.isel(seed=[]),
    "no episode; accepted: at least": lambda ds: ds.isel(episode=[]),
    "episode .* after .*; accepted: numbers above 0": lambda ds: ds.isel(episode=[3, 2, 1, 0]),
    "episode nan after 1": lambda ds: names(ds, episode=[1, np.nan, 3, 4]),
    "episode 0 after 0": lambda ds: names(ds, episode=[0, 1, 2, 3]),
    "regret of dtype <U": lambda ds: ds.assign(regret=ds["regret"].astype(str)),
    "regret of dtype complex128": lambda ds: ds.assign(regret=ds["regret"].astype(complex)),
    "regret along 'T'; accepted: learner": lambda ds: ds.expand_dims(T=2),
    "regret along 'algorithm'": lambda ds: ds.rename(learner="algorithm"),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_result_gets_no_number(message):
    wrong = WRONG[message](DS)
    for use in USERS.values():
        with pytest.raises(ValueError, match=f"ds: {message}"):
            use(wrong)


def test_without_regret():
    for name in ("compare", "final_table", "profiles", "improvement"):
        with pytest.raises(ValueError, match="ds: no variable 'regret'; accepted: the Dataset"):
            USERS[name](DS.drop_vars("regret"))
    with pytest.raises(ValueError, match="ds: no variable 'final_policy'; accepted"):
        jb.final_policy(DS[["regret"]], FIRST, "I1")


def test_parts_are_results():
    """A dimension that xarray has dropped is one with a single entry."""
    part, same = DS.sel(instance="I1"), DS.sel(instance=["I1"])
    assert whole(part).sizes == same.sizes
    assert jb.stats.compare(part).means == jb.stats.compare(same).means
    assert jb.stats.final_table(part) == jb.stats.final_table(same)
    assert list(jb.plot_final(part).data) == list(jb.plot_final(same).data)
    alone = DS.isel(learner=0)
    assert jb.stats.final_table(alone) == jb.stats.final_table(DS, learners=[FIRST])
    assert check_axes(DS) is DS
