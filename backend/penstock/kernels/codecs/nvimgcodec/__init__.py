"""nvImageCodec's C API: a batch is parsed, laid out and decoded by one call that needs no GIL."""
