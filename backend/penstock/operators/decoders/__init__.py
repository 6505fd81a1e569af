"""Decoders: encoded images and arrays to tensors."""
