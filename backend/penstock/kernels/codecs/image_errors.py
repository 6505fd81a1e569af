"""What can be wrong with bytes that should be an encoded image."""

from __future__ import annotations

from penstock.errors import PenstockError


class ImageError(PenstockError, ValueError):
    """Bytes that should be an encoded image cannot be read as one."""


class NotAnImageError(ImageError):
    """The bytes are empty or of no known image format."""


class CorruptImageError(ImageError):
    """The bytes begin like an image, but are cut short or damaged."""
