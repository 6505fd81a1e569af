"""Serving with Triton: the backend that it loads, and a local server."""
