"""my-instance: an instance.

Look at it:                    python my_instance.py
In a sweep:                    jb.sweep(learners={...}, instances={"my-instance": my_instance()}, ...)
"""

import jax
import jax.numpy as jnp

import jaxbandit as jb


def my_instance(horizon=6, shelf=3):
    """Selling from a shelf: a low price surely sells one item, a high price sells half of the time.

    An MDP is a table of outcomes: in stage i, at level l, action a has outcome m with probability
    prob[i, l, a, m], which pays reward[i, l, a, m] and leads to level next_level[i, l, a, m]. Level
    0 means that nothing is left: it pays nothing and is never left. No episode may pay more than 1.
    """
    low, high = 0.5 / shelf, 1.0 / shelf
    sold_at_low = [1.0, 0.0]  # outcomes: sold, not sold
    sold_at_high = [0.5, 0.5]
    shape = (horizon, shelf + 1, 2, 2)  # [H, k+1, A, M]
    prob = jnp.broadcast_to(jnp.asarray([sold_at_low, sold_at_high]), shape)
    paid = jnp.broadcast_to(jnp.asarray([[low, 0.0], [high, 0.0]]), shape)
    level = jnp.arange(shelf + 1, dtype=jnp.int32)[None, :, None, None]
    sold = jnp.asarray([1, 0], jnp.int32)[None, None, None, :]
    mdp = jb.MDP(
        prob=prob,
        reward=jnp.where(level > 0, paid, 0.0),
        next_level=jnp.broadcast_to(jnp.maximum(level - sold, 0), shape),
        # the order that OrderedExpRef may know: the larger, the more likely to stay at the level
        rank=jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32), shape[:3]),
        start=jnp.asarray(shelf, jnp.int32),
    )
    names = {"actions": ["low price", "high price"], "offers": ["sold", "not sold"]}
    return jb.label(jb.validate(mdp), unit="$", scale=100.0 * shelf, level="items left", **names)


if "my-instance" not in jb.INSTANCES.names():
    jb.register_instance("my-instance", my_instance)  # for jb.make_instance("my-instance")

if __name__ == "__main__":
    mdp = my_instance()
    value, policy = jb.optimal(mdp)
    print(mdp, "optimal value", float(value))
    print(jb.trace(mdp, policy, jax.random.key(0)))
