"""Checks of the headers of encoded data, before any library parses them: one module per family of formats."""
