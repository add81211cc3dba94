"""The contract: a learner is a NamedTuple of pure functions.

    constants(problem, params)                 -> tree       what never changes during a run
    init(problem, constants, key)              -> state      before the first episode
    act(state, key, constants)                 -> policy     int [H, k+1], or float [H, k+1, A]
    update(state, policy, feedback, constants) -> state      exactly the feedback that ``feedback`` names

The state is a tree of arrays. Hyper-parameters are array leaves in ``params``, so a sweep over them
is a ``vmap`` and compiles once; whatever changes the *program* (a variant, a schedule's length) is
fixed when the learner is made. A learner is made without the MDP: an engine hands it the
`Problem`, which holds the sizes, the number of episodes and, only for a learner that asks for it in
``requires``, the known order of the actions. What never changes during a run is not state: it comes
from ``constants``, which is optional; without it the constants are the parameters. A function with
another number of arguments is refused when the learner is made.

Learners that only ever play a fixed randomised policy n times and look at the sum are written in
*block form* (`BlockForm`) and turned into episodic ones by `from_blocks`; the block engine runs
them without simulating episodes. Engines and sweeps refuse what breaks the contract
(`check_contract`, `check_report`), and `jaxbandit.testing.check_learner` tries it out.

`forms` holds `Learner` and `BlockForm`, their signatures and what engines hand over, `checks` what is refused, `fitting`
the constants and whether functions fit together. From outside: the names below.
May import: feedback, `xla`.
"""

from jaxbandit.learner.checks import COORDINATES, REQUIRES, RESERVED, check_contract, check_report
from jaxbandit.learner.fitting import make_constants
from jaxbandit.learner.forms import BlockForm, Blocks, Learner, Problem

__all__ = [
    "COORDINATES",
    "REQUIRES",
    "RESERVED",
    "BlockForm",
    "Blocks",
    "Learner",
    "Problem",
    "check_contract",
    "check_report",
    "make_constants",
]
