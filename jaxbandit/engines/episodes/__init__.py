"""The episode engine: every episode of any learner is simulated; `runner.EpisodeRunner` drives it.

`environment` holds the MDPs as tables, plays an episode and computes exact regrets; `loop` is the compiled loop over
episodes. From outside: `EpisodeRunner`, through `jaxbandit.engines.make_runner`. May import: the model, the contract,
`kernels`, `xla`, and `engines.runner`.
"""
