"""Readers: data sets on disk, sample by sample."""
