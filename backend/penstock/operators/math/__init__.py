"""Arithmetic, reductions and normalization."""
