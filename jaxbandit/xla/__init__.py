"""Whatever knows jax's insides: barriers to fusion, 64-bit types, compiled programs, start-up
flags, random words.

From outside: `barriers.separate`, `compat.x64`, `programs.release_memory`, `flags.start_jax`,
`threefry`.
May import: nothing of this package.
"""
