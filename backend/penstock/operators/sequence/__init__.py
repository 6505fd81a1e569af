"""Operators on sequences of frames."""
