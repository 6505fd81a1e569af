"""Fuzzes everything that decodes untrusted bytes: seeds, mutations, targets, and supervised processes to run them."""
