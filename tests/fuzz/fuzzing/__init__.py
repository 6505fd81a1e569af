"""Fuzzing of everything that decodes untrusted bytes: seeds, mutations, targets, and supervised processes that run them."""
