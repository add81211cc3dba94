"""The block engine: n episodes of a policy are pushed through the stages as counts; `runner.BlockRunner` drives it.

`outcomes` is an MDP as tables, `rows` those of a policy on it, in words of `codec`; `machine` is a step of the workers
and `counts` their queue, `binomial` draws, `plain` is all that in thirty lines; `bits` is one-bit feedback; `loop` plays
blocks, `checks` refuses wrong ones, `curve` adds up. From outside: `BlockRunner` (through
`jaxbandit.engines.make_runner`) and `block_sizes`.
May import: as `episodes`.
"""
