"""What there is, in words: what a name means, a small example of every family, one page of everything.

`describing` answers for a name (`jb.describe`) with a `descriptions.Description`, read from docstrings
by `docstrings`; `examples` has a small instance of every family, `gallery` draws the page.
From outside: `describing.describe`, `examples.small_instance` and `gallery.make_gallery`, each from its
module, because not all of them start jax. May import: everything but the command line.
"""
