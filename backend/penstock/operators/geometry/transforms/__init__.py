"""Operators that make and combine affine matrices."""
