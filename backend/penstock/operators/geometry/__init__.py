"""Operators that move pixels or coordinates: rotation, affine maps, flips of boxes."""
