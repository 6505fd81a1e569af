"""From a network's outputs to answers: boxes, labels, text and masks; and what the next network reads of an image."""
