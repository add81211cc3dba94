"""The block engine: n episodes of a policy are pushed through the stages as counts; `runner.BlockRunner` drives it.

`machine` is an MDP and a policy as tables, the workers that push counts, and one-bit feedback; `binomial` draws; `loop`
plays blocks and refuses wrong ones. From outside: `BlockRunner` (through `jaxbandit.engines.make_runner`) and
`block_sizes`. May import: as `episodes`.
"""
