"""A cache of decoded images in GPU memory, so that recurring files are decoded only once."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger(__name__)
_MEGABYTE = 1024 * 1024


class ImageCache:
    """Caches arrays by name, up to a total size.

    Args:
        capacity: the largest total in bytes; 0 disables the cache.
        keep_largest: whether larger images replace smaller ones in a full cache; otherwise, a full cache does not change.
        threshold: the smallest image to cache, in bytes.
        verbose: whether to log once that the cache is full.

    >>> cache = ImageCache(capacity=100)
    >>> cache.offer("a.jpg", np.zeros(60, np.uint8))
    >>> cache.find("a.jpg").size
    60
    """

    def __init__(self, capacity: int, keep_largest: bool = False, threshold: int = 0, verbose: bool = False) -> None:
        self.capacity = capacity
        self._keep_largest = keep_largest
        self._threshold = threshold
        self._verbose = verbose
        self._images: dict[str, Any] = {}
        self._used = 0

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any]) -> ImageCache:
        """Make the cache for a decoder's ``cache_*`` arguments; raise ValueError for an unknown ``cache_type``."""
        kind = arguments.get("cache_type", "")
        if kind not in ("", "threshold", "largest"):
            raise ValueError(f"Unknown cache_type '{kind}': use `threshold` or `largest`")
        capacity = arguments.get("cache_size", 0) * _MEGABYTE if kind else 0
        return cls(
            capacity, kind == "largest", arguments.get("cache_threshold", 0), arguments.get("cache_debug", False)
        )

    def find(self, name: str) -> object:
        """Return the cached image of that name, or None."""
        return self._images.get(name)

    def offer(self, name: str, image: Any) -> None:
        """Cache an image if it has a name and there is room."""
        size = int(image.nbytes)
        if not name or name in self._images or not max(self._threshold, 1) <= size <= self.capacity:
            return
        if self._used + size > self.capacity and not (self._keep_largest and self._drop_smaller(size)):
            self._report_full()
            return
        self._images[name] = image
        self._used += size

    def _drop_smaller(self, size: int) -> bool:
        """Make room for an image by removing smaller ones; if that does not suffice, remove none and return False."""
        free, dropped = self.capacity - self._used, []
        for name, image in sorted(self._images.items(), key=lambda item: int(item[1].nbytes)):
            if free >= size or image.nbytes >= size:
                break
            dropped.append(name)
            free += int(image.nbytes)
        if free < size:
            return False
        for name in dropped:
            self._used -= int(self._images.pop(name).nbytes)
        return True

    def _report_full(self) -> None:
        if self._verbose:
            _log.info("The decoder's cache is full: %d images, %d bytes", len(self._images), self._used)
            self._verbose = False
