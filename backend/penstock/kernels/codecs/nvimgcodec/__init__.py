"""nvImageCodec through its C API: a single call of the core, which needs no GIL, parses a batch, prepares buffers and decodes the batch."""
