"""Operators that run networks: from files, in this process, or other models of the same server."""
