"""Made-up results of the ladder, which the tests of its choice, figures and tables share."""

import pytest
from made_up_ladder import make_up_ladder_all

from jaxbandit.experiment import Options


@pytest.fixture(scope="module")
def plans():
    from jaxbandit.experiments import ladder

    return ladder.sweeps(Options(instances=4))


@pytest.fixture(scope="module")
def made(plans):
    return make_up_ladder_all(plans)
