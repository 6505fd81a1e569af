"""Fuzzing of everything that decodes bytes of strangers: seeds, mutations, targets, and watched processes that run them."""
