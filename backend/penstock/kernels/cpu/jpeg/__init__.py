"""Decoding baseline JPEG, step by step: markers, entropy, transform, colour."""
