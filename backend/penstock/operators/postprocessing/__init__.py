"""Operators that turn a network's outputs into answers (boxes, labels, text, masks) or into another network's input."""
