"""Operators that bring data into a pipeline."""
