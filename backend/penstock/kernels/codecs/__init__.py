"""Parsing and decoding encoded images, audio and video, on the CPU and the GPU."""
