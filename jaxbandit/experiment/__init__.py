"""What an experiment is and how it is run: the contract, the catalogue of names, the driver, the
report.

The experiments themselves are in the folder `experiments/`. From outside: the names below (no jax
is started).
May import: everything but the command line.
"""

from jaxbandit.experiment.catalogue import catalogue, load_experiment
from jaxbandit.experiment.contract import Experiment, Options

__all__ = ["Experiment", "Options", "catalogue", "load_experiment"]
