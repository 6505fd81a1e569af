"""Parsing and decoding encoded images, audio and video, on CPU and GPU."""
