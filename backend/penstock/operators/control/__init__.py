"""Operators that choose among samples: what conditionals are made of."""
