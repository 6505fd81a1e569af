"""Turns a network's outputs into answers: boxes, labels, text and masks; and into the next network's input."""
