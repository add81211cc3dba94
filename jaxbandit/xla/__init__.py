"""Whatever knows jax's insides: barriers to fusion, 64-bit types, compiled programs and where they are kept, random bits.

From outside: `platforms.separate`, `compat.x64`, `programs.release_memory`, `compilations.start_jax` and `persistent_cache`,
`threefry`.
May import: nothing of this package.
"""
