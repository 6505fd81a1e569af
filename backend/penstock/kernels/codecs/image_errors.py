"""The errors of encoded images."""

from __future__ import annotations

from penstock.errors import PenstockError


class ImageError(PenstockError, ValueError):
    """The bytes cannot be read as an encoded image."""


class NotAnImageError(ImageError):
    """The bytes are empty or of no known image format."""


class CorruptImageError(ImageError):
    """The bytes begin like an image, but are truncated or damaged."""
