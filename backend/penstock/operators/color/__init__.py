"""Operators on colours: brightness, contrast, hue, saturation, colour spaces."""
