"""Experiments of the paper and beyond."""
