"""Operators that move pixels or coordinates: rotation, affine transforms, flips of boxes."""
