"""Arithmetic and reductions."""
