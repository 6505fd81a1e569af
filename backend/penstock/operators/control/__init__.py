"""The operators that implement conditionals."""
