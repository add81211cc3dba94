"""The instance that the peers are compared on; the peers need Numba, so they are imported when asked for."""

import pytest
from peers_compared import MDP


@pytest.fixture(scope="module")
def mdp():
    return MDP


@pytest.fixture(scope="module")
def instance(mdp):
    from jaxbandit.experiments.bench import peers

    return peers.tables(mdp)
