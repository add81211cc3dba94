"""The block engine: n episodes of a policy are pushed through the stages as counts; `runner.BlockRunner` drives it.

`outcomes` is an MDP as tables, `rows` those of a policy on it; `machine` is the workers, their queue and one-bit feedback,
`binomial` draws; `loop` plays blocks and refuses wrong ones. From outside: `BlockRunner` (through
`jaxbandit.engines.make_runner`) and `block_sizes`.
May import: as `episodes`.
"""
