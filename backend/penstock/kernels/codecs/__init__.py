"""Parsing and decoding of encoded images, audio and video, on the CPU and the GPU."""
