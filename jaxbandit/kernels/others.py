"""Kernels of the other learners."""

from __future__ import annotations

KERNELS: list = []
