"""Operators on images, volumes and sequences of images: sizes, windows, filters."""
