"""The episode engine: every episode of any learner is simulated; `runner.EpisodeRunner` drives it.

`world` holds the MDPs as tables, `loop` the compiled loop over episodes. From outside:
`EpisodeRunner`, through `jaxbandit.engines.make_runner`. May import: the model, the contract,
`xla`, and `engines.runner`.
"""
