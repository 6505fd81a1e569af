"""Checks of encoded data's headers, before any library sees them: one module for each family of formats."""
