"""What all figures share: palette, numbers on axes, labels at line ends, and files.

Figures are made through matplotlib's object interface, never through pyplot: nothing is registered globally,
nothing needs a display, and a figure is freed with the value that holds it. A notebook shows the returned
`Drawn`.
"""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.intervals import accept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
GREY, LIGHT_GREY = "#595959", "#b0b0b0"
TITLE_SIZE, TEXT_SIZE, TICK_SIZE, NOTE_SIZE = 9.0, 8.0, 7.0, 6.5
FILE_SETTINGS: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "jaxbandit"}

# Okabe and Ito's colours, which stay apart for all common kinds of colour vision. The learners of the paper
# have theirs in every figure; line styles differ too, for prints in grey.
_KNOWN = {"orderedexpref": ("#D55E00", 1), "expref": ("#0072B2", 0), "ucbvi": ("#009E73", 2)}
_OTHERS = ("#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7A00")
_LINES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.2)), (0, (4, 1.4, 1.2, 1.4, 1.2, 1.4)),
)  # fmt: skip


class Drawn(NamedTuple):
    """A figure and the data in it; the value of every plotting function."""

    figure: Figure
    axes: Any
    """The Axes, or a list of them for a figure of several panels."""
    data: dict[Any, Any]
    """What was drawn, by label (and by panel first, if there are several)."""

    def save(self, path: str | os.PathLike, formats: Sequence[str] | None = None) -> list[pathlib.Path]:
        """Writes the figure; see `save_figure`."""
        return save_figure(self.figure, path, formats)

    def _repr_png_(self) -> bytes | None:
        """The picture in a notebook, unless pyplot manages the figure and shows it anyway."""
        if self.figure.canvas.manager is not None:
            return None
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


class Style(NamedTuple):
    """How a learner is drawn."""

    color: str
    line: Any


def styles(names: Sequence[str]) -> dict[str, Style]:
    """A colour and a line style for each name: fixed for the learners of the paper, in order for others.

    Variants of a learner ("UCB-VI, bonus_scale = 0.5") share its hue in other tones and line styles.

    Example:
        >>> styles(["UCB-VI", "ExpRef"])["ExpRef"].color
        '#0072B2'
    """
    chosen: dict[str, Style] = {}
    used = dict.fromkeys(_KNOWN, 0)
    others = 0
    for name in sorted(names, key=lambda name: _plain(name) not in _KNOWN):  # exact names keep the base style
        base = next((known for known in _KNOWN if _plain(name).startswith(known)), None)
        if base is None:
            color, line, variant = _OTHERS[others % len(_OTHERS)], 3 + others, others // len(_OTHERS)
            others += 1
        else:
            (color, line), variant = _KNOWN[base], used[base]
            used[base] += 1
        style = _LINES[(line + variant) % len(_LINES)]
        taken = [other.line for other in chosen.values()]
        free = [one for one in (style, *_LINES[3:], *_LINES) if one not in taken]
        chosen[name] = Style(_tone(color, variant), free[0] if free else style)
    return {name: chosen[name] for name in names}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _tone(color: str, variant: int) -> str:
    """The colour itself, then darker and lighter by turns."""
    from matplotlib.colors import to_hex, to_rgb

    share = (0.0, 0.4, 0.3, 0.7, 0.45)[variant % 5]
    target = np.zeros(3) if variant % 2 else np.ones(3)
    red, green, blue = (1 - share) * np.array(to_rgb(color)) + share * target
    return to_hex((red, green, blue)).upper()


def compact(value: float) -> str:
    """A number for an axis: 500, 20k, 0.5M, 2M; powers of ten from a thousand million on.

    Example:
        >>> [compact(v) for v in (0, 250, 1500, 500_000, 2e6, 1e12)]
        ['0', '250', '1.5k', '0.5M', '2M', '$10^{12}$']
    """
    size = abs(value)
    if size >= 1e9:
        power = int(np.floor(np.log10(size)))
        factor = value / 10**power
        return (f"${factor:.3g}\\times 10^{{{power}}}$").replace("$1\\times ", "$")
    if size >= 5e5:
        return f"{value / 1e6:.4g}M"
    return f"{value / 1e3:.4g}k" if size >= 1e3 else f"{value:.4g}"


def new_figure(size: tuple[float, float], rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of some inches with rows x columns axes, laid out so that nothing is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", dpi=100)
    FigureCanvasAgg(figure)
    return figure, list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())


def figure_of(ax: Axes) -> Figure:
    """The whole figure of some axes, also if they lie in a part of it."""
    return ax.figure.canvas.figure


def plain_axes(ax: Axes) -> None:
    """Light axes: no top and right spine, small ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=TICK_SIZE, color=GREY, length=2.5, width=0.6)
    ax.tick_params(which="minor", color=LIGHT_GREY, length=1.5, width=0.5)


def number_axis(ax: Axes, which: str, low: float, high: float, log: bool) -> None:
    """Scale, limits and round ticks of the "x" or "y" axis; no ticks beyond ``high`` if the limits grow."""
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
        NullLocator,
    )

    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log" if log else "linear")
    getattr(ax, f"set_{which}lim")(low, high)
    inside = lambda ticks: [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]  # noqa: E731
    if log:
        powers = inside(10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1))
        few = len(powers) < 2
        ticks = inside(LogLocator(subs=(1.0, 2.0, 5.0)).tick_values(low, high)) if few else powers
        steps = [] if few else inside(np.outer(10.0 ** np.arange(-12, 16), np.arange(2, 10)).ravel())
        axis.set_minor_locator(FixedLocator(steps))
        axis.set_minor_formatter(NullFormatter())
    else:
        ticks = inside(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))


class End(NamedTuple):
    """A line's last point and its label."""

    label: str
    x: float
    y: float
    color: str


def label_ends(ax: Axes, ends: Sequence[End]) -> None:
    """Writes each label right of its line's end, inside the axes, moved up or down until none overlap.

    The x limits grow to make room, so labels stay inside any figure, whoever made its layout.
    """
    from matplotlib.text import Text

    low, high = ax.get_ylim()
    ends = [end for end in ends if np.isfinite(end.y) and min(low, high) <= end.y <= max(low, high)]
    if not ends:
        return
    texts = [
        ax.annotate(
            end.label, (end.x, end.y), (7, 0), textcoords="offset points", va="center", fontsize=TICK_SIZE,
            color=end.color, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": end.color, "lw": 0.5, "shrinkA": 0, "shrinkB": 1},
        )
        for end in ends
    ]  # fmt: skip
    for text in texts:
        text.set_in_layout(False)  # they get their room inside the axes, below
    figure = figure_of(ax)
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    boxes = [Text.get_window_extent(text) for text in texts]  # without the line to the point
    frame = ax.get_window_extent()
    wanted = max(box.width for box in boxes) + 11 * scale
    _grow_right(ax, min(0.6, wanted / frame.width))
    points = [ax.transData.transform((end.x, end.y))[1] for end in ends]
    gap = max(box.height for box in boxes) * 0.95
    for text, point, place in zip(texts, points, _spread(points, gap, frame.y0, frame.y1), strict=True):
        text.set_position((7, (place - point) / scale))


def _grow_right(ax: Axes, share: float) -> None:
    """Moves the right limit until ``share`` of the width lies beyond the old one; the spine stays."""
    low, high = ax.get_xlim()
    ax.spines["bottom"].set_bounds(low, high)
    ax.xaxis.label.set_x((1 - share) / 2)
    if ax.get_xscale() == "log":
        ax.set_xlim(low, high * (high / low) ** (share / (1 - share)))
    else:
        ax.set_xlim(low, high + (high - low) * share / (1 - share))


def _spread(points: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places nearest to ``points`` that are ``gap`` apart: least squares, by merging neighbours."""
    order = np.argsort(points, kind="stable")
    groups: list[list[float]] = []  # [mean of point - rank * gap, members]
    for rank, j in enumerate(order):
        groups.append([points[j] - rank * gap, 1])
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (a, m), (b, n) = groups[-2:]
            groups[-2:] = [[(a * m + b * n) / (m + n), m + n]]
    starts = np.concatenate([np.full(int(members), start) for start, members in groups])
    placed = starts + gap * np.arange(len(order))
    placed += max(0.0, low + gap / 2 - placed[0])
    placed -= max(0.0, placed[-1] - (high + gap / 2))
    answer = np.empty(len(order))
    answer[order] = placed
    return answer.tolist()


def heading(ax: Axes, title: str, notes: Sequence[str]) -> None:
    """A title at the left with small grey lines under it."""
    text = "\n".join(note for note in notes if note)
    lines = text.count("\n") + 1 if text else 0
    ax.set_title(title, loc="left", fontsize=TITLE_SIZE, pad=4 + lines * NOTE_SIZE * 1.25)
    if text:
        ax.annotate(
            text, (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", va="bottom",
            fontsize=NOTE_SIZE, color=GREY, linespacing=1.15, annotation_clip=False,
        )  # fmt: skip


def save_figure(
    figure: Figure | Drawn, path: str | os.PathLike, formats: Sequence[str] | None = None, dpi: int = 200
) -> list[pathlib.Path]:
    """Writes a figure to ``path`` in each format and returns the files; folders are made as needed.

    A path that ends in .png, .svg or .pdf gives that format (unless ``formats`` says otherwise), any other
    path all three. Each file is written aside and renamed, so a reader never sees half a file. Files carry no
    date: the same commands give the same files.

    Example:
        >>> import tempfile
        >>> figure, axes = new_figure((2, 2))
        >>> [file.name for file in save_figure(figure, tempfile.mkdtemp() + "/folder/name")]
        ['name.png', 'name.svg', 'name.pdf']
    """
    import matplotlib

    figure = figure.figure if isinstance(figure, Drawn) else figure
    path = pathlib.Path(path)
    if path.suffix[1:].lower() in FORMATS:
        formats = [path.suffix[1:].lower()] if formats is None else formats
        path = path.with_suffix("")
    written = []
    for form in FORMATS if formats is None else formats:
        accept("formats", form, FORMATS)
        file = path.with_name(f"{path.name}.{form}")
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{file.name}.{os.getpid()}.part")
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        try:
            with matplotlib.rc_context(FILE_SETTINGS):
                figure.savefig(aside, format=form, dpi=dpi, metadata=dates)
            os.replace(aside, file)
        finally:
            aside.unlink(missing_ok=True)
        written.append(file)
    return written
