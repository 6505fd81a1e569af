"""Decoders: from encoded images, audio, video and arrays to tensors."""
