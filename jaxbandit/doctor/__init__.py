"""``jaxbandit doctor``: what this machine is, whether jax's wheels fit together, and whether numbers come out right.

`machine` looks at versions, flags and devices, `checks` tests bits and laws, `speed` measures a little, and `report`
puts all of it into one JSON object for a bug report. From outside: `examine` and `format_report`.
May import: everything below the command line.
"""

from jaxbandit.doctor.report import examine, format_report

__all__ = ["examine", "format_report"]
