"""Audio operators."""
