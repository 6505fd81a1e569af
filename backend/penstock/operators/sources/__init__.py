"""Operators that feed data into a pipeline."""
