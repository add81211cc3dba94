"""Names of types that every room shares."""

from __future__ import annotations

from typing import Any

Array = Any
"""A jax or numpy array, or a tracer of one: annotations say its dtype and shape in words."""
State = Any
"""What a learner carries from episode to episode: a tree of arrays."""
