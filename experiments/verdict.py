"""The paper's empirical claims, each with numbers, intervals and a verdict (Section 5).

Reads the results of `prophet` and `runtimes`. How a claim about regret is judged, with one kind of
constants: the difference between two learners is paired by instance and seed; its intervals hold
jointly for all panels at 95 % (Bonferroni over panels). "holds": in every panel the interval is on
the claimed side of 0. "does not hold": in some panel the interval is on the other side. "not
decided": neither. If theory and practical constants disagree, the claim "depends" on the constants,
which the paper does not state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options

from . import prophet, runtimes

if TYPE_CHECKING:
    from xarray import Dataset

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
SAME_ORDER = 10.0
"""Two regrets are of the same order of magnitude if neither is more than so many times the
other."""
FLAT = 1.25
"""A time that grows by less than this factor from k = 2 to k = 4 is flat (the paper's: 1.01 to
1.05, and 1.8 to 1.9 for UCB-VI; the number of levels doubles)."""


class Interval(NamedTuple):
    """A number of one panel with its interval."""

    panel: str
    value: float
    low: float
    high: float
    doubt: str = ""
    """Why the interval may cover less than it says (`jaxbandit.stats.intervals`)."""

    def text(self, form: str = ",.0f") -> str:
        """For a table: value, interval, panel."""
        interval = (
            "no interval" if np.isnan(self.low) else f"{self.low:{form}} to {self.high:{form}}"
        )
        return f"{self.value:{form}} [{interval}] ({self.panel})"


class Finding(NamedTuple):
    """A claim judged with one kind of constants."""

    claim: str
    constants: str
    evidence: str
    verdict: str
    doubts: tuple[str, ...] = ()
    """Of its intervals."""


def judge(intervals: list[Interval], low: float = -np.inf, high: float = np.inf) -> str:
    """Whether all numbers lie between ``low`` and ``high``, as far as their intervals can tell.

    Example:
        >>> judge([Interval("a", 3, 1, 5), Interval("b", 2, 1, 3)], low=0)
        'holds'
        >>> judge([Interval("a", 3, 1, 5), Interval("b", -1, -3, 1)], low=0)
        'not decided'
        >>> judge([Interval("a", 3, 1, 5), Interval("b", -2, -3, -1)], low=0)
        'does not hold'
    """
    if any(each.high < low or each.low > high for each in intervals):
        return FAILS
    return HOLDS if all(low < each.low and each.high < high for each in intervals) else OPEN


def doubts_of(intervals: list[Interval]) -> tuple[str, ...]:
    """Why they may cover less than they say."""
    return tuple(each.doubt for each in intervals)


def differences(dataset: Dataset, first: str, second: str, times: int = 1) -> list[Interval]:
    """Final regret of ``first`` minus that of ``second`` per panel; ``times`` of them jointly at 95
    %."""
    from jaxbandit import stats

    last = dataset.isel(episode=[-1])
    panels = list(stats.families(last))
    level = 1 - 0.05 / (times * len(panels))
    found = []
    for panel in panels:
        band = stats.regret_difference(last, first, second, family=panel, level=level)
        ends = float(band.center[0]), float(band.low[0]), float(band.high[0])
        found.append(Interval(panel, *ends, doubt=band.warning))
    return found


def ratios(dataset: Dataset, first: str, second: str) -> list[Interval]:
    """Mean final regret of ``first`` over that of ``second``, per panel, jointly at 95 %
    (jackknife); no ratio of regrets is below 0."""
    from jaxbandit import stats
    from jaxbandit.stats.intervals import coverage_warning, jackknife_half_width

    last = dataset.isel(episode=[-1])
    panels = list(stats.families(last))
    found = []
    for panel in panels:
        x, y = (stats.replicates(last, name, family=panel)[:, 0] for name in (first, second))
        value = float(x.mean() / y.mean())
        left_out = (x.sum() - x) / (y.sum() - y) if len(x) > 1 else []
        half = jackknife_half_width(left_out, 1 - 0.05 / len(panels))
        doubt = coverage_warning(np.asarray(left_out)) if half > 0 else ""
        low = float(np.maximum(value - half, 0.0))
        found.append(Interval(panel, value, low, value + half, doubt=doubt))
    return found


def regret_findings(constants: str, dataset: Dataset) -> list[Finding]:
    """The three claims about regret with one kind of constants."""
    others = ("ExpRef", "OrderedExpRef")
    lowest = [
        each for name in others for each in differences(dataset, name, "UCB-VI", times=len(others))
    ]
    findings = [
        Finding(
            "UCB-VI has the lowest regret",
            constants,
            _signs(lowest, "the others minus UCB-VI"),
            judge(lowest, 0),
            doubts=doubts_of(lowest),
        )
    ]
    ordered = [
        name for name in map(str, dataset["learner"].values) if name.startswith("OrderedExpRef")
    ]
    for name in ordered:
        label = constants if name == "OrderedExpRef" else f"{constants} with k/(2H)"
        better = differences(dataset, "ExpRef", name)
        findings.append(
            Finding(
                "OrderedExpRef is below ExpRef in every panel",
                label,
                _signs(better, "ExpRef minus OrderedExpRef"),
                judge(better, 0),
                doubts=doubts_of(better),
            )
        )
    for name in ordered:
        label = constants if name == "OrderedExpRef" else f"{constants} with k/(2H)"
        factor = ratios(dataset, name, "UCB-VI")
        evidence = f"OrderedExpRef over UCB-VI: {_extremes(factor, '.2f')}"
        verdict = judge(factor, 1 / SAME_ORDER, SAME_ORDER)
        findings.append(
            Finding(
                "OrderedExpRef is of UCB-VI's order of magnitude",
                label,
                evidence,
                verdict,
                doubts=doubts_of(factor),
            )
        )
    return findings


def _signs(intervals: list[Interval], what: str) -> str:
    above = sum(each.low > 0 for each in intervals)
    below = sum(each.high < 0 for each in intervals)
    rest = len(intervals) - above - below
    counts = f"as claimed in {above} of {len(intervals)} comparisons, opposite in {below}, open in {rest}"
    return f"{counts}; {what}: {_extremes(intervals)}"


def _extremes(intervals: list[Interval], form: str = ",.0f") -> str:
    """The smallest and the largest number, each with its interval."""
    ends = [
        min(intervals, key=lambda each: each.value),
        max(intervals, key=lambda each: each.value),
    ]
    return " up to ".join(each.text(form) for each in dict.fromkeys(ends))


def time_findings(datasets: dict[str, Dataset]) -> list[Finding]:
    """The two claims about running times, one seed alone with every episode simulated."""
    claims: list[tuple[str, tuple[str, ...], dict[str, float]]] = [
        (
            "ExpRef's and OrderedExpRef's time is flat in k",
            ("ExpRef", "OrderedExpRef"),
            {"high": FLAT},
        ),
        ("UCB-VI's time grows with k", ("UCB-VI",), {"low": FLAT}),
    ]
    findings = []
    for claim, learners, bounds in claims:
        for way, words in (
            ("alone", "one seed alone"),
            ("together", f"per seed of {runtimes.TOGETHER}"),
        ):
            factors = []
            for horizon, actions in runtimes.sizes_in(datasets):
                for learner in learners:
                    factor = runtimes.growth(datasets, way, learner, horizon, actions)
                    if factor is not None:
                        size = f"{learner}, H = {horizon}, A = {actions}"
                        ends = factor.value, factor.low, factor.high
                        factors.append(Interval(size, *ends, doubt=factor.warning))
            if factors:
                evidence = f"time at k = 4 over time at k = 2: {_extremes(factors, '.2f')}"
                verdict, doubts = judge(factors, **bounds), doubts_of(factors)
                findings.append(Finding(claim, words, evidence, verdict, doubts=doubts))
    return findings


def overall(findings: list[Finding]) -> dict[str, str]:
    """One word per claim: what all its findings agree on, else "depends" and on what.

    Example:
        >>> overall([Finding("c", "theory", "", "holds"), Finding("c", "practical", "", "does not hold")])
        {'c': 'depends: holds (theory); does not hold (practical)'}
    """
    words: dict[str, dict[str, list[str]]] = {}
    for finding in findings:
        words.setdefault(finding.claim, {}).setdefault(finding.verdict, []).append(
            finding.constants
        )
    return {
        claim: next(iter(found))
        if len(found) == 1
        else "depends: "
        + "; ".join(f"{verdict} ({' and '.join(where)})" for verdict, where in found.items())
        for claim, found in words.items()
    }


def report(findings: list[Finding], note: str) -> str:
    """The findings as markdown: a line for each claim, then the evidence."""
    from jaxbandit.experiment import markdown_table
    from jaxbandit.stats.intervals import warning_line

    summary = [[claim, verdict] for claim, verdict in overall(findings).items()]
    evidence = [list(finding[:4]) for finding in findings]
    return "\n\n".join([
        markdown_table(["claim of the paper", "verdict"], summary),
        note + warning_line(doubt for finding in findings for doubt in finding.doubts),
        markdown_table(["claim of the paper", "with", "evidence", "verdict"], evidence),
    ])  # fmt: skip


def claims_about_regret(by_constants: Mapping[str, Dataset]) -> str:
    """The claims about regret as markdown; ``by_constants``: "theory" and "practical" -> joined
    Dataset."""
    findings = [
        f
        for constants, dataset in by_constants.items()
        for f in regret_findings(constants, dataset)
    ]
    return report(_ordered(findings), _note(by_constants))


def _ordered(findings: list[Finding]) -> list[Finding]:
    """Findings of one claim side by side, claims in the order of their first appearance."""
    claims = list(dict.fromkeys(finding.claim for finding in findings))
    return sorted(findings, key=lambda finding: claims.index(finding.claim))


def _note(by_constants: Mapping[str, Dataset]) -> str:
    dataset = next(iter(by_constants.values()))
    episodes = int(dataset["episode"].values[-1])
    panels = len(set(map(str, dataset["family"].values)))
    size = (
        "the paper's"
        if episodes == prophet.NUM_EPISODES
        else f"the paper has {prophet.NUM_EPISODES:,}"
    )
    return (
        f"Regret after T = {episodes:,} episodes ({size}), {panels} of the paper's 12 panels. Differences "
        "are paired; their intervals hold jointly for all panels at 95 %. Same order of magnitude: within a "
        f'factor of {SAME_ORDER:g}. Practical constants void the theorems\' guarantee; "with k/(2H)": with '
        "the paper's probability of exploration in OrderedExpRef."
    )


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """All claims, as verdict.md."""
    regrets = {
        label.removeprefix("prophet/"): ds
        for label, ds in datasets.items()
        if label.startswith("prophet/")
    }
    timings = {label: ds for label, ds in datasets.items() if label.startswith("runtimes/")}
    by_constants: dict[str, Any] = {
        constants: prophet.joined(regrets, constants) for constants in prophet.CONSTANTS
    }
    findings = [
        f
        for constants, dataset in by_constants.items()
        for f in regret_findings(constants, dataset)
    ]
    findings += time_findings(timings)
    times = f"A time is flat in k if it grows by less than a factor of {FLAT:g} from k = 2 to 4 (95 % intervals)."
    return {"verdict.md": report(_ordered(findings), f"{_note(by_constants)} {times}")}


EXPERIMENT = Experiment(
    "verdict",
    __doc__,
    lambda options: {},
    tables=tables,
    needs=("prophet", "runtimes"),
    open_to_learners=False,
    outputs={"verdict.md": "every claim with numbers, intervals and a verdict"},
    takes="a few seconds, after the two experiments that it reads",
)
