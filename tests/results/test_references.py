"""The committed references: what they hold, that today's code gives the same, and one's own learner in them."""

import json
from pathlib import Path

import numpy as np
import pytest
from jaxbandit.experiments import prophet
from scipy import stats as scipy_stats

import jaxbandit as jb
from jaxbandit.experiment import Options
from jaxbandit.results.references import TABLES, make_reference, reference_names
from jaxbandit.sweeps.arguments import expand_instances

DATA = Path(jb.references.__file__).parent / "data"


def test_references_are_small_and_say_what_they_are():
    assert reference_names() == ["prophet", "prophet-full"]
    for name in reference_names():
        assert (DATA / f"{name}.nc").stat().st_size < 1_000_000
        found = jb.reference(name)
        assert found.attrs["command"].startswith("jaxbandit run ")
        assert "T = " in found.attrs["note"]
        assert json.loads(found.attrs["versions"])["jax"]
        regret = found["regret"].values
        # At full size the drawn instances have two seeds each and I1 has 32.
        assert np.isfinite(regret[:, :, :2]).all()
        assert np.isfinite(found["regret"].sel(instance="I1 H=15 k=2").values).all()
        steps = np.diff(regret, axis=-1)
        assert (steps[np.isfinite(steps)] >= -1e-3).all()


def test_the_paper_s_size_is_there_and_can_be_drawn():
    full = jb.reference("prophet-full")
    assert int(full["episode"].values[-1]) == 2_000_000
    assert full.sizes["seed"] == 32
    drawn = jb.plot_panels(full)
    assert len(drawn.data) == 12
    assert all(np.isfinite(band.center).all() for band in drawn.data["I2 H=20 k=4"].values())


def test_instances_are_those_of_the_experiment():
    plan = prophet.sweeps(Options())["both"]
    made = expand_instances(plan["instances"])
    kept = expand_instances(jb.reference_sweep("prophet")["instances"])
    assert list(kept) == list(made)
    for name, mdp in made.items():
        for table in TABLES:
            np.testing.assert_array_equal(getattr(kept[name], table), getattr(mdp, table))


def test_todays_code_gives_the_same_regret_in_law():
    how = jb.reference_sweep("prophet")
    panel = "I1 H=15 k=2"
    learner = {"ExpRef (practical)": jb.make_learner("expref", preset="practical")}
    how |= {"instances": {panel: how["instances"][panel]}, "seed": 99, "num_seeds": 12}
    again = jb.sweep(learner, **how, progress=False)["regret"].values[0, 0, :, -1]
    then = jb.reference("prophet")["regret"].sel(learner="ExpRef (practical)", instance=panel)
    # Other seeds, so only the law is compared: false alarm 0.1 % for a fresh key, none for this one.
    assert scipy_stats.ttest_ind(again, then.values[:, -1], equal_var=False).pvalue > 1e-3


@pytest.fixture(scope="module")
def mine():
    how = jb.reference_sweep("prophet")
    how["instances"] = {"I1 H=15 k=2": how["instances"]["I1 H=15 k=2"]}
    return jb.sweep(
        {"Mine": jb.make_learner("expref", preset="practical", threshold=0.2)},
        **how,
        progress=False,
    )


def test_ones_own_learner_is_drawn_into_the_figure(mine):
    both = jb.reference("prophet", mine)
    assert both["learner"].values.tolist()[-1] == "Mine"
    assert both.sizes["learner"] == 8
    np.testing.assert_array_equal(
        both["regret"].sel(learner="Mine", instance="I1 H=15 k=2").values,
        mine["regret"].values[0, 0],
    )
    theirs = jb.reference("prophet")["regret"]
    np.testing.assert_array_equal(both["regret"].values[:7], theirs.values)
    drawn = jb.plot_panels(both)
    assert "Mine" in drawn.data["I1 H=15 k=2"]
    assert "Mine" not in drawn.data["I2 H=15 k=2"]
    pairs = jb.stats.compare(both, family="I1 H=15 k=2").pairs
    assert any("Mine" in pair[:2] for pair in pairs)


def edited(ds, **entries):
    return ds.assign_attrs(config=json.dumps(json.loads(ds.attrs["config"]) | entries))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: edited(m, num_episodes=5), "num_episodes 5; accepted: 100000"),
        (lambda m: edited(m, seed=3), "seed 3; accepted: 0"),
        (lambda m: edited(m, instances={}), "is not that of the reference"),
        (lambda m: m.assign_coords(instance=["J"]), "instance 'J' is not that of the reference"),
        (lambda m: m.assign_coords(learner=["UCB-VI (theory)"]), "accepted: other names"),
        (lambda m: m.isel(episode=slice(1, None)), "episode 2000 was not recorded"),
    ],
)
def test_other_sweeps_are_refused(mine, change, message):
    with pytest.raises(ValueError, match=message):
        jb.reference("prophet", change(mine))


def test_a_reference_is_made_of_a_sweep_and_its_instances(tmp_path):
    mdps = {
        "a": jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3),
        "b": jb.make_instance("prophet-uniform", horizon=2, capacity=2, num_values=4),
    }
    ds = jb.sweep({"U": jb.make_learner("uniform")}, mdps, 40, 2, record=jb.record.linear(8), progress=False)  # fmt: skip
    how = {"points": 4, "command": "jaxbandit run it", "note": "T = 40"}
    made = make_reference(ds, mdps, **how)
    assert made["regret"].dtype == np.float32
    assert made["episode"].values.tolist() == [10, 20, 30, 40]
    back = jb.load(jb.save(made, tmp_path / "it.nc"))
    for name, mdp in jb.references.stored_instances(back).items():
        for table in TABLES:
            np.testing.assert_array_equal(getattr(mdp, table), getattr(mdps[name], table))
    with pytest.raises(ValueError, match=r"instances\['a'\]: SHA-256"):
        make_reference(ds, {"a": mdps["b"], "b": mdps["b"]}, **how)
    with pytest.raises(ValueError, match="points: 3; accepted: a divisor of the 8"):
        make_reference(ds, mdps, **{**how, "points": 3})


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="name: 'profet'; did you mean 'prophet'"):
        jb.reference("profet")
