"""The paper's experiments and those of its theory: every file with a value ``EXPERIMENT`` is one.

``price_of_horizon.py`` is called "price-of-horizon". The contract is
`jaxbandit.experiment.Experiment`; the benchmark has a folder of its own, `bench`. Nothing here
starts jax before an experiment is loaded.
"""
