"""Operators on images, volumes and sequences: resizing, windows, filters."""
