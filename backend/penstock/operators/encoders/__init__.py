"""Encoders of images and sounds to files."""
