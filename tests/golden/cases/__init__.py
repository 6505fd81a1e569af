"""Cases by family of operators."""
