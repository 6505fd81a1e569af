"""Decoding baseline JPEG: markers, entropy, transform, colour."""
