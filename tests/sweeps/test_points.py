"""Parameter points without their product."""

import numpy as np
import pytest

import jaxbandit as jb


def test_points_are_the_settings_in_their_order():
    learner = jb.make_learner("ordered-expref", preset="practical")
    tried = jb.points(
        learner, [{"threshold": 0.3}, {"exploration_scale": 1.5, "threshold": 0.2}, {}]
    )
    assert tried.names == ("threshold", "exploration_scale")
    own = {name: float(learner.params[name]) for name in tried.names}
    params = tried.learner.params
    np.testing.assert_array_equal(params["threshold"], [0.3, 0.2, own["threshold"]])
    np.testing.assert_array_equal(
        params["exploration_scale"], [own["exploration_scale"], 1.5, own["exploration_scale"]]
    )
    assert params["epsilons"].shape == (3, *np.shape(learner.params["epsilons"]))


def test_points_of_a_product_run_as_the_grid():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    learner = jb.make_learner("ucbvi")
    scales = [0.1, 0.5]
    runs = [
        jb.sweep(
            {"UCB-VI": many},
            {"I1": mdp},
            60,
            num_seeds=2,
            record=jb.record.linear(3),
            progress=False,
        )
        for many in (
            jb.grid(learner, bonus_scale=scales),
            jb.points(learner, [{"bonus_scale": scale} for scale in scales]),
        )
    ]
    assert runs[0]["regret"].identical(runs[1]["regret"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings: .*accepted: a non-empty list of dictionaries"),
        ([0.5], "settings: .*accepted: a non-empty list of dictionaries"),
        ([{"bonus": 1.0}], "no scalar parameter 'bonus'; accepted: bonus_scale"),
        ([{"bonus_scale": [1.0, 2.0]}], "accepted: one number per setting"),
    ],
)
def test_errors_name_what_is_accepted(settings, message):
    with pytest.raises(ValueError, match=message):
        jb.points(jb.make_learner("ucbvi"), settings)
