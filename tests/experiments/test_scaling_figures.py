"""Figures of the scaling experiment: bounds where the paper has them, axes in powers of ten."""

import matplotlib.pyplot as plt
import numpy as np
from jaxbandit.experiments import scaling, scaling_figures

from jaxbandit import theory

T = np.array([1e6, 1e9])


def test_lower_bounds_are_those_of_general_instances_of_width_two():
    general, ordered = scaling.Shape(False, 3, 2, 2), scaling.Shape(True, 3, 2, 2)
    found = scaling_figures.bounds_of(general, "ExpRef", T)
    np.testing.assert_array_equal(found["upper"], theory.upper_bound_general(3, 2, 2, T))
    np.testing.assert_array_equal(found["lower"], theory.lower_bound_general(3, 2, T))
    found = scaling_figures.bounds_of(ordered, "OrderedExpRef", T)
    np.testing.assert_array_equal(found["upper"], theory.upper_bound_ordered(3, 2, 2, T))
    assert "lower" not in found


def test_axes_in_powers_of_ten():
    assert scaling_figures.decades(np.array([3.0, 4e5])) == (1.0, 1e6)
    figure, ax = plt.subplots()
    scaling_figures.power_axis(ax, "x", 1.0, 1e12, most=4)
    ticks = ax.xaxis.get_majorticklocs()
    plt.close(figure)
    assert 2 <= len(ticks) <= 5
    np.testing.assert_allclose(np.log10(ticks) % 1, 0, atol=1e-9)
