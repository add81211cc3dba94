"""Exact binomial draws by rejection, one attempt at a time and vectorised over lanes.

For X ~ Binomial(n, p) with mode m let f(x) = P(X = x) / P(X = m). Two proposals share one acceptance test:

* ratio of uniforms (E. Stadlober, "The ratio of uniforms approach for generating discrete random variates", 1990): with
  U, V uniform on (0, 1), x = floor(n p + 1/2 + 2 h (V - 1/2) / U) is accepted if U^2 <= f(x). This is exact as soon as
  |y - (n p + 1/2)| sqrt(f(floor y)) <= h for all y, which holds for *every* n and p with
  h = sqrt(2/e) sqrt(n p (1 - p) + 1/2) + 3/2 - sqrt(3/e) (the tests check it on a grid). It accepts 24-73 %.
* transformed rejection (W. Hörmann, "The generation of binomial random variates", 1993, algorithm BTRS) where
  n min(p, 1 - p) >= 10: it accepts 73-87 %.

So one attempt serves n = 1 and n = 10^12. log f(x) is a difference of log-factorials. Those of n = 10^12 are about 10^13,
whose float64 has no correct digit after the second decimal, so the difference is taken analytically (log1p of small
ratios, Stirling's corrections apart). Needs x64.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

_SPREAD = math.sqrt(2 / math.e)
_MARGIN = 1.5 - math.sqrt(3 / math.e)
_LARGE = 10.0
# z mu(z) as a polynomial in 1/z, where mu(z) = log Gamma(z) - (z - 1/2) log z + z - log(2 pi)/2 is what Stirling's formula
# leaves out: Chebyshev interpolation on 1 <= z < infinity, error of mu below 2e-12. No table, so that the code vectorises.
_CORRECTION = (
    0.0833333333311677, 7.3115100538683167e-10, -0.0027778184802921078, 8.8373620918437923e-07,
    0.00078382094597741528, 6.3220755773408626e-05, -0.00084029913487226892, 0.00054292809865908549,
    0.00040665153822453157, -0.00094957822686648422, 0.00073720380358444819, -0.00028461141047191383,
    4.5731108272263293e-05,
)  # fmt: skip


def attempt(n: jax.Array, p: jax.Array, u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One attempt at Binomial(n, p) for 0 < p < 1 and n >= 1, all float64: (accepted, x).

    u and v are independent uniforms on (0, 1); x is meaningless where not accepted.
    """
    small = jnp.minimum(p, 1 - p)
    spread = jnp.sqrt(n * small * (1 - small))
    large = n * small >= _LARGE
    center = n * small + 0.5
    offset = v - 0.5
    # Transformed rejection: v places the proposal, u decides.
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * small
    edge = 0.5 - jnp.abs(offset)
    shift = (2 * a / edge + b) * offset
    density = u * (2.83 + 5.1 / b) * spread / (a / (edge * edge) + b)
    # Ratio of uniforms: v / u places the proposal, u^2 decides.
    reach = _SPREAD * jnp.sqrt(spread * spread + 0.5) + _MARGIN
    x = jnp.floor(center + jnp.where(large, shift, 2 * reach * offset / u))
    inside = (x >= 0) & (x <= n)
    x = jnp.clip(x, 0, n)
    mode = jnp.floor((n + 1) * small)
    bound = jnp.log(jnp.where(large, density, u * u))
    accepted = inside & (bound <= log_ratio(n, small, x, mode))
    return accepted, jnp.where(p > 0.5, n - x, x)


def log_ratio(n: jax.Array, p: jax.Array, x: jax.Array, m: jax.Array) -> jax.Array:
    """log P(X = x) - log P(X = m) for X ~ Binomial(n, p), accurate to about 1e-9 even at n = 10^12."""
    step = x - m
    return (
        step * jnp.log(p * (n - m + 1) / ((1 - p) * (x + 1)))
        - (m + 0.5) * _log1p(step / (m + 1))
        + (n - x + 0.5) * _log1p(step / (n - x + 1))
        + (_correction(m) - _correction(x))
        + (_correction(n - m) - _correction(n - x))
    )


def _log1p(y: jax.Array) -> jax.Array:
    """log(1 + y) to a few units in the last place for y > -1, and faster than jnp.log1p.

    Near 0 by 2 artanh(z), z = y / (2 + y). The usual trick, log(w) y / (w - 1) with w = 1 + y, does not survive
    compilation: XLA simplifies w - 1 to y, and the error in log f grows to 1e-4 at n = 10^12.
    """
    z = y / (2 + y)
    square = z * z
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11 + square / 13))))
    return jnp.where(jnp.abs(z) < 0.05, 2 * z + 2 * z * square * series, jnp.log(1 + y))


def _correction(x: jax.Array) -> jax.Array:
    """What Stirling's formula for log x! leaves out: mu(x + 1)."""
    inverse = 1 / (x + 1)
    value = jnp.full_like(x, _CORRECTION[-1])
    for coefficient in _CORRECTION[-2::-1]:
        value = value * inverse + coefficient
    return value * inverse
