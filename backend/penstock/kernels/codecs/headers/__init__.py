"""Header checks of encoded data, before any library parses it: one module per family of formats."""
