"""Operators on tensors of any kind: they change types, shapes and layouts, join tensors and select parts."""
