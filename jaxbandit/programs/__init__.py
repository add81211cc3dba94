"""What a learner *runs*: the source of everything that its functions reach, as a digest that is the same in every process.

`program` is the digest, `walk` follows functions, classes and objects, `sources` reads their text, `members` tells what their authors wrote from
what Python adds, `libraries` what is installed from what is the user's.
From outside: the names below. May import: the contract, `xla`.
"""

from jaxbandit.programs.program import Program, follow, program_of

__all__ = ["Program", "follow", "program_of"]
