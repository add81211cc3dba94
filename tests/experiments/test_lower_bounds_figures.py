"""The figure of `lower-bounds`: what is drawn are the ratios of the tables."""

from jaxbandit.experiments import lower_bounds
from jaxbandit.experiments.lower_bounds_figures import draw_ratios
from made_up_results import make_up

from jaxbandit.experiment import Options


def test_ratios_of_both_families_are_drawn():
    plans = lower_bounds.sweeps(Options(seeds=2))
    levels = {name: 1.0 for plan in plans.values() for name in plan["learners"]}
    levels |= {name.split(",")[0].split(" (")[0]: 1.0 for name in levels}
    datasets = {label: make_up(plan, levels) for label, plan in plans.items()}
    for label, ds in datasets.items():
        datasets[label] = ds.assign(final_gap=ds["regret"].isel(episode=-1) * 0)
    drawn = draw_ratios(datasets)
    drawn.figure.draw_without_rendering()
    for kind, ds in datasets.items():
        assert drawn.data[kind] == lower_bounds.ratios(ds, kind == "ordered")
