"""nvImageCodec's C API: a single call of the core, which needs no GIL, parses a batch, prepares its buffers and decodes it."""
