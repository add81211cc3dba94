"""A small Dataset with the variables and coordinates of a sweep, for the tests of figures."""

import numpy as np
import xarray as xr

LEARNERS = ("ExpRef", "OrderedExpRef", "UCB-VI")


def synthetic_sweep(
    instances=("I1 H=4 k=2",),
    num_seeds=8,
    num_points=40,
    num_episodes=2_000_000,
    horizon=4,
    width=2,
):
    """Curves T^0.8, T^0.7, T^0.3 with gamma noise; three phases, the last never finished by
    ExpRef."""
    rng = np.random.default_rng(0)
    lanes = (len(LEARNERS), len(instances), num_seeds)
    episodes = np.linspace(0, num_episodes, num_points + 1)[1:].astype(np.int64)
    levels = np.array([9e4, 6e4, 2e4])[:, None, None, None]
    exponents = np.array([0.8, 0.7, 0.3])[:, None, None, None]
    regret = levels * rng.gamma(20, 1 / 20, (*lanes, 1)) * (episodes / num_episodes) ** exponents
    phase_end = np.full((*lanes, 3), np.nan)
    phase_end[:2] = (
        num_episodes * np.array([0.05, 0.2, 0.6]) * rng.uniform(0.9, 1.1, (2, *lanes[1:], 3))
    )
    phase_end[0, :, :, 2] = np.nan
    active = np.full((*lanes, 3, horizon, width + 1), np.nan)
    active[:2] = rng.integers(1, 6, active[:2].shape)
    active[0, :, :, 2] = np.nan
    optimal = rng.integers(0, 5, (len(instances), horizon, width + 1)).astype(float)
    learned = np.broadcast_to(optimal[None, :, None], (*lanes, horizon, width + 1)).copy()
    learned[:, :, :, 1, 1] = (learned[:, :, :, 1, 1] + 1) % 5
    dims = ("learner", "instance", "seed")
    return xr.Dataset(
        {
            "regret": ((*dims, "episode"), regret),
            "phase_end": ((*dims, "phase"), phase_end),
            "active_actions": ((*dims, "phase", "stage", "level"), active),
            "final_policy": ((*dims, "stage", "level"), learned),
            "optimal_policy": (("instance", "stage", "level"), optimal),
        },
        coords={
            "learner": list(LEARNERS),
            "instance": list(instances),
            "seed": np.arange(num_seeds),
            "episode": episodes,
            "phase": [1, 2, 3],
            "stage": np.arange(1, horizon + 1),
            "level": np.arange(width + 1),
            "family": ("instance", [name.split("/")[0] for name in instances]),
        },
    )


def with_parameter_grid(ds, values=(0.1, 0.5, 2.0)):
    """The same sweep with UCB-VI at several bonus scales; the others have one point."""
    regret = ds["regret"].expand_dims(parameter=np.arange(len(values))).copy()
    regret = regret.transpose("learner", "instance", "parameter", "seed", "episode")
    factor = xr.DataArray([1.0 + value for value in values], dims="parameter")
    regret[2] = regret[2] * factor
    regret[:2, :, 1:] = np.nan
    scale = np.full((3, len(values)), np.nan)
    scale[2] = values
    return xr.Dataset({"regret": regret}).assign_coords(
        bonus_scale=(("learner", "parameter"), scale)
    )


def clipped_texts(figure):
    """Texts that reach beyond the figure by more than a pixel."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    whole = figure.bbox
    out = []
    for text in figure.findobj(Text):
        if not text.get_visible() or not text.get_text().strip():
            continue
        box = text.get_window_extent()
        if (
            box.x0 < whole.x0 - 1
            or box.y0 < whole.y0 - 1
            or box.x1 > whole.x1 + 1
            or box.y1 > whole.y1 + 1
        ):
            out.append(text.get_text())
    return out


def texts(figure):
    """All texts of a figure in one string, a line each however they are broken."""
    from matplotlib.text import Text

    shown = (text.get_text() for text in figure.findobj(Text) if text.get_visible())
    return "\n".join(text.replace("\n", " ") for text in shown)
