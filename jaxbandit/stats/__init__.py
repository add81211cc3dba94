"""Statistics apart from drawing: intervals, replicates out of a Dataset, growth rates, tables.

`intervals`, `coverage_warnings`, `bootstrap` and `joint` know numbers only, `replication` reads Datasets, `summaries`, `decisions` and
`profiles` build on them.
From outside: the names below. May import: nothing of this package but `checks`, `tabular` and `types`.
"""

from jaxbandit.stats.decisions import Comparison, Pair, compare, compare_values
from jaxbandit.stats.intervals import (
    KINDS,
    Band,
    Estimate,
    band,
    mean_interval,
    paired_difference,
)
from jaxbandit.stats.joint import fewest_runs
from jaxbandit.stats.profiles import (
    Improvement,
    Profiles,
    improvement_table,
    performance_profiles,
    probability_of_improvement,
)
from jaxbandit.stats.replication import (
    CurveName,
    curve_names,
    families,
    parameter_names,
    parameter_values,
    regret_band,
    regret_difference,
    replicate_kind,
    replicates,
)
from jaxbandit.stats.summaries import (
    Row,
    TimeToTarget,
    final_table,
    format_table,
    loglog_slope,
    time_to_average_regret,
)

__all__ = [
    "KINDS",
    "Band",
    "Comparison",
    "CurveName",
    "Estimate",
    "Improvement",
    "Pair",
    "Profiles",
    "Row",
    "TimeToTarget",
    "band",
    "compare",
    "compare_values",
    "curve_names",
    "families",
    "fewest_runs",
    "final_table",
    "format_table",
    "improvement_table",
    "loglog_slope",
    "mean_interval",
    "paired_difference",
    "parameter_names",
    "parameter_values",
    "performance_profiles",
    "probability_of_improvement",
    "regret_band",
    "regret_difference",
    "replicate_kind",
    "replicates",
    "time_to_average_regret",
]
