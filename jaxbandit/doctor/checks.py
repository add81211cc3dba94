"""The self-test: bits of a lane in company, and laws that do not share the code they test. About half a minute.

Statistical checks have fixed keys: on one kind of device they give the same answer every time. Their threshold is 5
standard errors, which a right program passes on a new kind of device but for 6 chances in 10 million.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbandit.xla.platforms import FLOAT32_EPSILON

SIZES = {"horizon": 5, "capacity": 2, "num_values": 4}
MOST_ERRORS = 5.0


def run_checks(device: Any) -> list[dict[str, Any]]:
    """All checks on a device: name, passed, what was seen, seconds."""
    return [run_check(name, check, device) for name, check in CHECKS.items()]


def run_check(name: str, check: Callable[[Any], tuple[bool, str]], device: Any) -> dict[str, Any]:
    """One check; an error is a failure with its text."""
    began = time.perf_counter()
    try:
        passed, seen = check(device)
    except Exception as error:  # whatever goes wrong on a strange machine belongs into the report
        passed, seen = False, f"{type(error).__name__}: {error}"
    return {"name": name, "passed": passed, "seen": seen, "seconds": time.perf_counter() - began}


def words(device: Any) -> tuple[bool, str]:
    """Our Threefry gives the words of jax's."""
    import jax
    import jax.numpy as jnp

    from jaxbandit.xla.threefry import key_words, threefry

    with jax.default_device(device):
        key = jax.random.key(7, impl="threefry2x32")
        folded = jax.random.key_data(jax.random.fold_in(key, 12345))
        ours = jnp.stack(jax.jit(threefry)(key_words(key), (jnp.uint32(0), jnp.uint32(12345))))
    same = np.array_equal(np.asarray(ours), np.asarray(folded))
    return same, "jax.random.fold_in and ours agree" if same else f"{ours} instead of {folded}"


def doubles(device: Any) -> tuple[bool, str]:
    """float64 adds whole numbers up to 2^53 exactly, and in order."""
    import jax
    import jax.numpy as jnp

    from jaxbandit.xla.compat import x64

    with x64(), jax.default_device(device):
        terms = jnp.asarray([2.0**53 - 4, 1.0, 1.0, 1.0, 1.0], jnp.float64)
        total = jax.jit(lambda x: x[0] + x[1] + x[2] + x[3] + x[4])(terms)
    found = float(total)
    return found == 2.0**53, f"2^53 - 4 + 1 + 1 + 1 + 1 = {found:.0f}"


def bits(learner: str, engine: str, num_episodes: int) -> Callable[[Any], tuple[bool, str]]:
    """A lane alone and in company has the same bits."""

    def check(device: Any) -> tuple[bool, str]:
        import jaxbandit as jb

        made = jb.make_learner(learner, preset="practical")
        mdp = jb.make_instance("prophet-uniform", **SIZES)
        other = jb.make_instance(
            "prophet", values=_values(), probabilities=np.full((5, 4), 0.25), capacity=2
        )
        how: dict[str, Any] = {
            "num_episodes": num_episodes,
            "engine": engine,
            "record": jb.record.linear(20),
            "progress": False,
            "devices": [device],
        }
        alone: Any = jb.sweep({"one": made}, {"I1": mdp}, num_seeds=1, **how)
        company: Any = jb.sweep(
            {"one": made}, {"I1": mdp, "other": other}, num_seeds=19, chunk_size=77, **how
        )
        one = alone["regret"].sel(instance="I1", seed=0).values
        many = company["regret"].sel(instance="I1", seed=0).values
        same = one.tobytes() == many.tobytes()
        return same, f"regret {one.ravel()[-1]} alone, {many.ravel()[-1]} beside 37 others"

    return check


def exact_regret(device: Any) -> tuple[bool, str]:
    """The regret of a fixed policy is T times its own, found by other code in float64."""
    import jaxbandit as jb

    episodes = 1000
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    policy = np.ones((mdp.horizon, mdp.width + 1), np.int32)
    ds: Any = jb.sweep(
        {"fixed": jb.make_learner("fixed", policy=policy)}, {"I1": mdp}, num_episodes=episodes, num_seeds=1,
        record=jb.record.linear(1), progress=False, devices=[device],
    )  # fmt: skip
    found = float(ds["regret"].values.ravel()[-1])
    wanted = episodes * float(jb.regret(mdp, policy))
    # All terms are positive. A stage rounds 2 k + 1 table entries and as many sums and products, the sum over episodes
    # (in float64) nothing that counts; jb.regret itself, in float32 or better, errs by as much.
    bound = 2 * mdp.horizon * (4 * mdp.width + 2) * FLOAT32_EPSILON
    return abs(found / wanted - 1) <= bound, f"{found} of {wanted}, bound {bound:.1e} of it"


def engines(device: Any) -> tuple[bool, str]:
    """ExpRef block by block and episode by episode has one mean regret."""
    import jaxbandit as jb

    mdp = jb.make_instance("prophet-uniform", **SIZES)
    made = jb.make_learner("expref", episodes_scale=0.01, last_epsilon=0.1, threshold=0.2)
    found = []
    for engine in ("blocks", "episodes"):
        ds: Any = jb.sweep(
            {"ExpRef": made}, {"I1": mdp}, num_episodes=4000, num_seeds=128, engine=engine,
            record=jb.record.linear(1), progress=False, devices=[device],
        )  # fmt: skip
        found.append(ds["regret"].values.ravel())
    (one, two), count = found, len(found[0])
    spread = float(np.sqrt((one.var(ddof=1) + two.var(ddof=1)) / count))
    errors = float(abs(one.mean() - two.mean()) / spread)
    told = f"mean regret {one.mean():.2f} and {two.mean():.2f}, {errors:.1f} standard errors apart"
    return errors <= MOST_ERRORS, told


def _values() -> np.ndarray:
    return np.linspace(0.1, 1.0, 20).reshape(4, 5).T


CHECKS: dict[str, Callable[[Any], tuple[bool, str]]] = {
    "random words": words,
    "float64": doubles,
    "bits, episodes": bits("ucbvi", "episodes", 1500),
    "bits, blocks": bits("expref", "blocks", 10**6),
    "exact regret": exact_regret,
    "law of the engines": engines,
}
