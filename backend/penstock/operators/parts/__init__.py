"""One sample to many, and back: crops of boxes, tiles, frames."""
