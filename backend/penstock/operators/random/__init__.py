"""Random operators."""
