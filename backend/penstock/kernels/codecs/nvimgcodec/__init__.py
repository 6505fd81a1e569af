"""nvImageCodec's C API: a single call that needs no GIL parses a batch, prepares its buffers and decodes it."""
