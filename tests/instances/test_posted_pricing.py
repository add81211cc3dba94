"""Posted pricing: customers buy at their valuation."""

import families
import numpy as np

import jaxbandit as jb

make = jb.make_instance


def probability_of_staying(mdp, level):
    return np.asarray(jb.transition_kernel(mdp))[:, level, :, level]


def test_customers_buy_at_their_valuation_and_pay_the_price():
    mdp = make(
        "posted-pricing", values=families.VALUES, probabilities=families.PROBABILITIES, capacity=2
    )
    sells = [[1, 0.5, 0.2], [1, 0.75, 0.25]]
    np.testing.assert_allclose(probability_of_staying(mdp, 2), 1 - np.array(sells), atol=1e-6)
    prices = np.sort(families.VALUES, axis=1)
    np.testing.assert_allclose(jb.mean_reward(mdp)[:, 1] * 2, prices * sells, rtol=1e-6)
