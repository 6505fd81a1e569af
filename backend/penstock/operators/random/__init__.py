"""Operators that return random numbers, add noise, or crop at random."""
