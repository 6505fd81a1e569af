"""Readers: data sets on disk."""
