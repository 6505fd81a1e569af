"""Serving with Triton: the backend that Triton loads, and a local server."""
