"""Whatever knows jax's insides: barriers to fusion, 64-bit types, compiled programs, start-up
flags, random words.

From outside: `barriers.separate`, `compat.x64`, `programs.release_memory`, `flags.start_jax`,
`compilations.kept_compilations`,
`threefry`.
May import: nothing of this package.
"""
