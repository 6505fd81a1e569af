"""The operators behind conditionals."""
