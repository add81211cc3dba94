"""Statistics apart from drawing: intervals, replicates out of a Dataset, growth rates, tables.

`intervals` knows numbers only, `replication` reads Datasets, `decisions` builds on them.
From outside: what each module lists in its ``__all__``; modules are found in this folder, so a new statistic is a file of
its own and its test. May import: nothing of this package but `checks`, `tabular` and `types`.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxbandit.stats.decisions import *  # noqa: F403
    from jaxbandit.stats.intervals import *  # noqa: F403
    from jaxbandit.stats.replication import *  # noqa: F403

__all__: list[str] = []
for _found in pkgutil.iter_modules(__path__):  # noqa: F405
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    __all__ += _module.__all__
