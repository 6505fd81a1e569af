"""Operators that split samples into parts (crops of boxes, tiles, frames), and that join parts again."""
