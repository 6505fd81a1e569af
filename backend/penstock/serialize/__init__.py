"""Saves and loads pipelines: the readable format, DALI's wire format, upgrades between versions."""
