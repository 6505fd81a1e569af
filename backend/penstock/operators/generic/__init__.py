"""Operators on tensors of any kind: types, shapes, layouts, selection."""
