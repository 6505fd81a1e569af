"""Triton: the backend that it loads, and the local server around it."""
