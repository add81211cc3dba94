"""What all figures share: `Drawn`, colours and line styles, axes and their numbers, labels, legends, headings, files.

Figures are made through matplotlib's object interface, never through pyplot: nothing is registered
globally, nothing needs a display, and a figure is freed with the value that holds it. A notebook
shows the returned `Drawn`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import pathlib
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, LIGHT_GREY = "#595959", "#b0b0b0"
TITLE_SIZE, TEXT_SIZE, TICK_SIZE, NOTE_SIZE = 9.0, 8.0, 7.0, 6.5
LEGEND: dict[str, Any] = {"frameon": False, "handlelength": 3}
LETTER = 0.56
"""Mean width of a letter, in font sizes."""
KNOWN = {"orderedexpref": ("#D55E00", 1), "expref": ("#0072B2", 0), "ucbvi": ("#009E73", 2)}
"""Okabe and Ito's colours, which stay apart for all common kinds of colour vision, and the places in
`LINES` that the learners of the paper have if both are free."""
OTHERS = ("#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7A00")
VARIANTS = (0.0, 0.4, -0.3, 0.7, -0.45)
"""Tones of the variants of a learner: the colour itself, then darker and lighter by turns."""
LINES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.2)), (0, (4, 1.4, 1.2, 1.4, 1.2, 1.4)),
)  # fmt: skip
"""Line styles, for prints in grey: the first three differ most."""
FORMATS = ("png", "svg", "pdf", "eps", "pgf")
USUAL_FORMATS = ("png", "svg", "pdf")
"""Those of a path without a suffix; eps knows no transparency, and pgf needs LaTeX."""
FILE_SETTINGS: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "jaxbandit"}
MATHEMATICS = re.compile(r"(?<!\\)\$[^$]*\$")
COMMANDS = re.compile(r"[\\{}#&~$]")
"""What LaTeX takes for more than a letter; matplotlib itself takes care of %, _ and ^."""


class Drawn(NamedTuple):
    """A figure and the data in it; the value of every plotting function."""

    figure: Figure
    axes: Any
    """The Axes, or a list of them for a figure of several panels."""
    data: dict[Any, Any]
    """What was drawn, by label (and by panel first, if there are several)."""
    caption: str = ""
    """What bands, marks and counts mean, for the caption of a paper; the grey subtitle unless
    ``subtitle=False`` leaves it out."""

    def save(
        self,
        path: str | os.PathLike,
        formats: Sequence[str] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> list[pathlib.Path]:
        """Writes the figure; see `save_figure`."""
        return save_figure(self, path, formats, about=about)

    def show(self) -> None:
        """Opens a window with the figure and waits until it is closed, for scripts.

        Without a display it raises RuntimeError and says to save the figure instead; a notebook
        shows a `Drawn` that is the last value of a cell by itself.
        """
        import matplotlib
        from matplotlib import pyplot

        backend = matplotlib.get_backend().lower()
        if backend in ("agg", "pdf", "svg", "ps", "pgf", "cairo", "template"):
            raise RuntimeError(
                f"show: no display (matplotlib's backend is {backend!r}); accepted: .save(PATH)"
            )
        window = pyplot.figure()  # a manager of pyplot's, for a figure that it did not make
        manager = window.canvas.manager
        assert manager is not None
        manager.canvas.figure = self.figure
        self.figure.set_canvas(manager.canvas)
        pyplot.show()

    def __repr__(self) -> str:
        """One line: how many panels, and the names of what is drawn."""
        panels = len(self.axes) if isinstance(self.axes, (list, tuple, np.ndarray)) else 1
        drawn = [str(name) for name in self.data]
        inside = [str(n) for value in self.data.values() if isinstance(value, dict) for n in value]
        names = ", ".join(dict.fromkeys(inside or drawn))
        names = names if len(names) <= 70 else f"{names[:67]}..."
        width, height = self.figure.get_size_inches()
        return f"Drawn({panels} panel{'s' * (panels != 1)}, {width:.1f} x {height:.1f} in: {names})"

    def _repr_png_(self) -> bytes | None:
        """The picture in a notebook, unless pyplot manages the figure and shows it anyway."""
        if self.figure.canvas.manager is not None:
            return None
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


class Style(NamedTuple):
    """How a learner is drawn."""

    color: str
    line: Any


def styles(names: Sequence[str]) -> dict[str, Style]:
    """A colour and a line style for each name that is drawn.

    The learners of the paper keep their colours; others get one in order. Variants of a learner
    ("UCB-VI, bonus_scale = 0.5") share its hue in other tones. Line styles differ as long as there
    are enough of them, so that curves can be told apart in grey.

    Example:
        >>> chosen = styles(["ExpRef (practical)", "UCB-VI (practical)"])
        >>> [style.color for style in chosen.values()]
        ['#0072B2', '#009E73']
    """
    plain = {name: "".join(filter(str.isalnum, name.lower())) for name in names}
    used = dict.fromkeys([*KNOWN, ""], 0)
    places: dict[str, tuple[str, int, int]] = {}
    for name in sorted(names, key=lambda name: plain[name] not in KNOWN):  # exact names come first
        base = next((known for known in KNOWN if plain[name].startswith(known)), "")
        variant, number = divmod(used[base], 1 if base else len(OTHERS))
        used[base] += 1
        places[name] = (*KNOWN.get(base, (OTHERS[number], variant)), variant)
    chosen: dict[str, Style] = {}
    for name in sorted(places, key=lambda name: places[name][2]):
        color, line, variant = places[name]
        taken = [other.line for other in chosen.values()]
        order = LINES[line:] + LINES[:line]
        place = VARIANTS[variant % len(VARIANTS)]
        tone = _tone(color, -abs(place) if color == "#000000" else place)
        chosen[name] = Style(tone, min(order, key=taken.count))
    return {name: chosen[name] for name in names}


def ramp(color: str, count: int) -> list[str]:
    """``count`` tones of one colour from light to dark, for the values of one parameter in order.

    Example:
        >>> ramp("#0072B2", 3)
        ['#8CC0DC', '#0072B2', '#003350']
    """
    places = np.linspace(-0.55, 0.55, count) if count > 1 else [0.0]
    return [_tone(color, place) for place in places]


def _tone(color: str, place: float) -> str:
    """The colour on its way to white (``place`` -1) or to black (1)."""
    from matplotlib.colors import to_hex, to_rgb

    base, target = np.array(to_rgb(color)), np.full(3, float(place < 0))
    red, green, blue = base + abs(place) * (target - base)
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


def literal(name: str) -> str:
    """A user's name as text of a figure: a dollar sign is no mathematics, and legends leave no name out (matplotlib
    skips those that begin with an underscore).

    Example:
        >>> print(literal("cost $5 to $6"))
        cost \\$5 to \\$6
    """
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def refuse_latex() -> None:
    """An error if matplotlib would give all texts to LaTeX, which would run what a name says."""
    import matplotlib

    if matplotlib.rcParams["text.usetex"]:
        raise ValueError(
            "matplotlib.rcParams['text.usetex']: True; accepted: False "
            "(LaTeX takes names for commands, and % for the end of a line)"
        )


def new_figure(
    size: tuple[float, float], rows: int = 1, columns: int = 1, number: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure of some inches with rows x columns axes (or the first ``number`` of them), laid out so that nothing is
    cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    refuse_latex()
    figure = Figure(figsize=size, layout="constrained", dpi=100)
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    number = len(axes) if number is None else number
    for spare in axes[number:]:
        spare.remove()
    return figure, axes[:number]


def figure_of(ax: Axes) -> Figure:
    """The whole figure of some axes, also if they lie in a part of it."""
    return ax.figure.canvas.figure


LEAST_PANEL = (1.6, 1.3)
"""Inches in which the numbers and titles of a panel do not lie on each other."""


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of this size."""
    if ax is None and size is not None and (size[0] < LEAST_PANEL[0] or size[1] < LEAST_PANEL[1]):
        least = f"{LEAST_PANEL[0]:.1f} x {LEAST_PANEL[1]:.1f}"
        raise ValueError(f"size: {size[0]:g} x {size[1]:g} inches; accepted: at least {least}")
    return new_figure(size)[1][0] if ax is None else ax


def grid_of(number: int, columns: int) -> tuple[int, int]:
    """Rows and columns of so many panels, with so many ``columns`` at most."""
    if columns < 1:
        raise ValueError(f"columns: {columns}; accepted: an integer >= 1")
    across = min(columns, number)
    return -(-number // across), across


def panel_axes(
    ax: Any, number: int, grid: tuple[int, int], size: tuple[float, float]
) -> list[Axes]:
    """The given axes, one per panel, or those of a new figure of this size with a grid of rows and columns."""
    if ax is None:
        return new_figure(size, *grid, number)[1]
    given = list(ax) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
    if len(given) != number:
        raise ValueError(f"ax: {len(given)} axes; accepted: {number}, one per panel")
    return given


def plain_axes(ax: Axes) -> None:
    """Light axes: no top and right spine, small ticks."""
    refuse_latex()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=TICK_SIZE, color=GREY, length=2.5, width=0.6)
    ax.tick_params(which="minor", color=LIGHT_GREY, length=1.5, width=0.5)


def number_axis(ax: Axes, which: str, low: float, high: float, log: str | bool) -> None:
    """Scale ("linear", "log" or "symlog"; True is "log"), limits and round ticks of the "x" or "y"
    axis; no ticks beyond ``high`` if the limits grow. "symlog" is linear up to ``low`` and
    begins at 0."""
    from matplotlib import ticker

    scale = log if isinstance(log, str) else "log" if log else "linear"
    axis = getattr(ax, f"{which}axis")
    more = {"linthresh": low, "linscale": 0.4} if scale == "symlog" else {}
    getattr(ax, f"set_{which}scale")(scale, **more)
    getattr(ax, f"set_{which}lim")(0.0 if scale == "symlog" else low, high)
    inside = lambda ticks: [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]  # noqa: E731
    if scale == "linear":
        ticks = inside(ticker.MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        axis.set_minor_locator(ticker.NullLocator())
    else:
        ticks = inside(10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1))
        steps = inside(np.outer(10.0 ** np.arange(-12, 16), np.arange(2, 10)).ravel())
        if len(ticks) < 2:
            some = ticker.LogLocator(subs=(1.0, 2.0, 5.0)).tick_values(low, high)
            ticks, steps = inside(some), []
        ticks = [0.0, *ticks] if scale == "symlog" else ticks
        axis.set_minor_locator(ticker.FixedLocator(steps))
        axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_locator(ticker.FixedLocator(ticks))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: compact(value)))


def set_axes(
    ax: Axes, x: tuple[float, float, str | bool], y: tuple[float, float, str | bool]
) -> None:
    """Light axes with numbers: low, high and scale of both, as `number_axis` takes them."""
    plain_axes(ax)
    number_axis(ax, "x", *x)
    number_axis(ax, "y", *y)


class End(NamedTuple):
    """A line's last point and its label."""

    label: str
    x: float
    y: float
    color: str


def label_ends(ax: Axes, ends: Sequence[End]) -> None:
    """Writes each label right of its line's end, inside the axes, moved up or down until none
    overlap.

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
    for text, point, place in zip(
        texts, points, _spread(points, gap, frame.y0, frame.y1), strict=True
    ):
        text.set_position((7, (place - point) / scale))


def _grow_right(ax: Axes, share: float) -> None:
    """Moves the right limit until ``share`` of the width lies beyond the old one; the spine
    stays."""
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


def caption_of(notes: Sequence[str]) -> str:
    """Notes as one line, for the caption of a paper.

    Example:
        >>> caption_of(["mean and 95 % t-interval", "", "circles: phase ends"])
        'mean and 95 % t-interval; circles: phase ends'
    """
    return "; ".join(" ".join(note.split()) for note in notes if note).replace(r"\$", "$")


def balanced(text: str, most: int) -> str:
    """The text in as few lines of at most ``most`` letters as it needs, of about one length.

    Example:
        >>> print(balanced("no line of a single word at the end", 30))
        no line of a single
        word at the end
    """
    fewest = len(textwrap.wrap(text, most))
    shortest = range(-(-len(text) // max(1, fewest)), most)
    fits = (width for width in shortest if len(textwrap.wrap(text, width)) == fewest)
    return textwrap.fill(text, next(fits, most))


def heading(ax: Axes, title: str, notes: Sequence[str], subtitle: bool = True) -> str:
    """A title at the left with small grey lines under it (unless ``subtitle`` is False), broken
    where they are wider than the figure. Returns the notes as a caption."""
    place = ax.get_position()
    # up to the figure's right end where nothing is beside the axes
    room = 72 * figure_of(ax).get_figwidth() * min(1 - place.x0, 1.13 * place.width)
    most = max(20, int(room / (LETTER * NOTE_SIZE)))
    text = "\n".join(balanced(note, most) for note in notes if note and subtitle)
    lines = text.count("\n") + 1 if text else 0
    above = 4 + lines * NOTE_SIZE * 1.25
    ax.set_title(readable("title", title), loc="left", fontsize=TITLE_SIZE, pad=above)
    if text:
        ax.annotate(
            text, (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", va="bottom",
            fontsize=NOTE_SIZE, color=GREY, linespacing=1.15, annotation_clip=False,
        )  # fmt: skip
    return caption_of(notes)


def name_axes(ax: Axes, x: str, y: str) -> None:
    """What stands below and beside the axes, unless it is empty."""
    for text, write in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        if text:
            write(text, fontsize=TEXT_SIZE)


def finish(
    ax: Axes,
    data: dict[Any, Any],
    notes: Sequence[str],
    name: str,
    title: str | None,
    subtitle: bool = True,
    ends: Sequence[End] = (),
) -> Drawn:
    """Writes the title (else the ``name``) with its notes and the labels of lines; the value of a figure of one panel."""
    caption = heading(ax, literal(name) if title is None else title, notes, subtitle)
    label_ends(ax, ends)
    return Drawn(figure_of(ax), ax, data, caption)


def banner(
    figure: Figure,
    of: Axes | Sequence[Any],
    title: str = "",
    note: str = "",
    *,
    grow: bool = True,
    size: float = TICK_SIZE,
) -> None:
    """Title, a grey note and one legend over all panels of a figure that `new_figure` made.

    ``of`` are the artists of the legend, or the axes in which they are labelled. The legend has as many columns as fit. If it would take more than a quarter of the height it
    goes beside the panels, with long labels broken into lines. With ``grow`` the figure becomes
    larger by as much, else the panels smaller.
    """
    readable("title", title)
    width, height = figure.get_size_inches()
    handles = of if isinstance(of, Sequence) else of.get_legend_handles_labels()[0]
    labels = [str(handle.get_label()) for handle in handles]
    looks: dict[str, Any] = {**LEGEND, "fontsize": size, "borderpad": 0}
    columns = _legend_columns(labels, 72 * width / size)
    row = 1.7 * size / 72
    beside = -(-len(labels) // columns) * row > 0.25 * (height + row * grow)
    if beside:
        looks["fontsize"] = size = NOTE_SIZE
        most = max(12, int((0.33 * width * 72 / size - 4.5) / LETTER))
        labels = [textwrap.fill(label, most) for label in labels]
        columns = 1
    legend = figure.legend(handles, labels, ncols=columns, loc="upper left", **looks)
    legend.set_in_layout(False)
    box = legend.get_window_extent()
    legend_width, legend_height = box.width / figure.dpi, box.height / figure.dpi
    right = legend_width + 0.15 if beside else 0.0
    wide = width + right * grow
    texts = []
    top = 0.06
    for words, points, color in ((title, TITLE_SIZE, "black"), (note, NOTE_SIZE, GREY)):
        if words:
            shown = balanced(words, max(20, int((wide - 0.2) * 72 / (LETTER * points))))
            texts.append((shown, points, color, top))
            top += (shown.count("\n") + 1) * 1.25 * points / 72 + 0.03
    start = top + 0.04
    top = top if beside else start + legend_height + 0.08
    tall = max(height, legend_height + 0.1 if beside else 0.0) + top if grow else height
    figure.set_size_inches(wide, tall)
    for shown, points, color, down in texts:
        figure.text(
            0.1 / wide, 1 - down / tall, shown, va="top", fontsize=points, color=color, linespacing=1.15
        ).set_in_layout(False)  # fmt: skip
    legend.set_bbox_to_anchor((1 - right / wide if beside else 0.1 / wide, 1 - start / tall))
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1 - right / wide, 1 - top / tall))


def _legend_columns(labels: Sequence[str], room: float) -> int:
    """The most columns of a legend, filled from the top, that are at most ``room`` font sizes wide."""
    for columns in range(len(labels), 1, -1):
        rows, longer = divmod(len(labels), columns)
        sizes = [rows + 1] * longer + [rows] * (columns - longer)
        starts = np.cumsum([0, *sizes])
        wide = (max(map(len, labels[a:b])) for a, b in itertools.pairwise(starts))
        if sum(3.8 + LETTER * letters for letters in wide) + 2 * (columns - 1) <= room - 1:
            return columns
    return 1


def readable(argument: str, value: Any) -> str:
    """``value`` as a text of a figure in which mathematics between dollar signs can be read.

    Example:
        >>> readable("title", "regret, $H = 15$")
        'regret, $H = 15$'
        >>> readable("title", "$x^{$")
        Traceback (most recent call last):
        ...
        ValueError: title: '$x^{$' has mathematics that cannot be read; accepted: text, \\$ for a dollar sign, ...
    """
    from matplotlib.mathtext import MathTextParser

    for line in checks.text(argument, value).split("\n"):
        # as matplotlib tells formulas from amounts: an even number of dollar signs that are not escaped
        dollars = line.count("$") - line.count(r"\$")
        if dollars == 0 or dollars % 2:
            continue
        try:
            MathTextParser("path").parse(line)
        except ValueError:
            raise ValueError(
                f"{argument}: {line!r} has mathematics that cannot be read; accepted: text, "
                r"\$ for a dollar sign, and formulas between two of them that matplotlib draws"
            ) from None
    return value


def save_figure(
    figure: Any,
    path: str | os.PathLike,
    formats: Sequence[str] | None = None,
    dpi: int = 200,
    about: Mapping[str, str] | None = None,
) -> list[pathlib.Path]:
    """Writes a figure to ``path`` in each format and returns the files; folders are made as needed.

    A path that ends in .png, .svg, .pdf, .eps or .pgf gives that format (unless ``formats`` says
    otherwise), a path without a suffix png, svg and pdf; any other suffix is refused. Each file is
    written aside and renamed, so a reader never sees half a file. Files carry no date: the same
    commands give the same files. A png, svg or pdf has the caption of a `Drawn` as its Description;
    ``about`` adds to it, such as {"Title": "Regret"}, in png files.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> figure = Figure((2, 2))
        >>> [file.name for file in save_figure(figure, tempfile.mkdtemp() + "/folder/name")]
        ['name.png', 'name.svg', 'name.pdf']
        >>> save_figure(figure, "name.jpg")
        Traceback (most recent call last):
        ...
        ValueError: path: name.jpg ends in '.jpg'; accepted: png, svg, pdf, eps, pgf, or no suffix
    """
    import matplotlib

    figure, caption = (figure.figure, figure.caption) if isinstance(figure, Drawn) else (figure, "")
    files = files_of(path, formats)
    if any(file.suffix == ".pgf" for file in files):
        program = str(matplotlib.rcParams["pgf.texsystem"])
        if shutil.which(program) is None:
            raise ValueError(
                f"formats: 'pgf' needs LaTeX ({program}), which is not installed here; "
                f"accepted without it: {', '.join(form for form in FORMATS if form != 'pgf')}"
            )
        check_texts(figure)
    written = []
    for file in files:
        form = file.suffix[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        described = {"Description": caption} if caption else {}
        facts: dict[str, Any] = {
            "png": {**described, **(about or {})},
            "svg": {"Date": None, **described},
            "pdf": {"CreationDate": None, **({"Subject": caption} if caption else {})},
            "eps": {"CreationDate": None},
        }
        content = io.BytesIO()
        opaque = _opaque(figure) if form == "eps" else contextlib.nullcontext()
        with matplotlib.rc_context(FILE_SETTINGS), opaque:
            figure.savefig(content, format=form, dpi=dpi, metadata=facts.get(form))
        try:
            write_atomically(file, content.getvalue())
        except OSError as error:
            raise OSError(error.errno, f"cannot write the figure to {file}: {error}") from error
        written.append(file)
    return written


def read_about(data: bytes) -> dict[str, str]:
    """What a png file says about itself: "Description", "Title" and the like, as `save_figure` wrote
    them; nothing if it is no png.

    Example:
        >>> read_about(b"no picture")
        {}
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            return {str(key): str(value) for key, value in getattr(image, "text", {}).items()}
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return {}


def files_of(path: str | os.PathLike, formats: Sequence[str] | None = None) -> list[pathlib.Path]:
    """The files that `save_figure` writes for a path.

    Example:
        >>> [str(file) for file in files_of("a/name.svg")]
        ['a/name.svg']
    """
    path = pathlib.Path(path)
    suffix = path.suffix[1:].lower()
    # "k=0.5" has a dot, too: only what looks like the name of a file type is taken for one
    if suffix in FORMATS:
        formats = [suffix] if formats is None else formats
        path = path.with_suffix("")
    elif suffix.isalpha():
        raise ValueError(
            f"path: {path.name} ends in {path.suffix!r}; accepted: {', '.join(FORMATS)}, or no suffix"
        )
    for form in formats or ():
        checks.accept("formats", form, FORMATS)
    return [path.with_name(f"{path.name}.{form}") for form in formats or USUAL_FORMATS]


def check_texts(figure: Figure) -> None:
    """An error if LaTeX, through which a pgf file goes, would read a name as commands."""
    from matplotlib.text import Text

    figure.draw_without_rendering()  # ticks get their texts when they are drawn
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        found = COMMANDS.search(MATHEMATICS.sub("", text.get_text()))
        if found:
            raise ValueError(
                f"formats: 'pgf' is LaTeX, and {text.get_text()!r} in this figure has the character {found[0]!r}; "
                "accepted: names without \\ { } # & ~ $ (names= gives others), or another format"
            )


@contextlib.contextmanager
def _opaque(figure: Figure) -> Iterator[None]:
    """Transparent areas in the colour that they have on white: PostScript knows no transparency."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    changed: list[tuple[Any, Any, Any]] = []
    for area in figure.findobj(PolyCollection):
        share, colors = area.get_alpha(), np.asarray(area.get_facecolor())
        if share is not None and 0 <= share < 1 and len(colors):
            changed.append((area, share, colors))
            red, green, blue = (1 - share * (1 - part) for part in to_rgb(tuple(colors[0][:3])))
            area.set_alpha(None)
            area.set_facecolor((red, green, blue))
    try:
        yield
    finally:
        for area, share, colors in changed:
            area.set_facecolor(colors)
            area.set_alpha(share)
