"""Statistics apart from drawing: intervals, replicates out of a Dataset, growth rates, tables.

`intervals` knows numbers only, `replication` reads Datasets, `decisions` builds on them.
From outside: what each module lists in its ``__all__``. May import: `results` and what is below it.
"""

from jaxbandit.stats import decisions, intervals, replication
from jaxbandit.stats.decisions import *  # noqa: F403
from jaxbandit.stats.intervals import *  # noqa: F403
from jaxbandit.stats.replication import *  # noqa: F403

__all__ = [*decisions.__all__, *intervals.__all__, *replication.__all__]  # noqa: PLE0604
