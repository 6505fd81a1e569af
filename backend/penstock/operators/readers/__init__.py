"""Readers of data sets in files."""
