"""Decoding of JPEGs: markers, entropy, transform, colour."""
