"""The cache of decoded images."""

import logging

import numpy as np
import pytest

from penstock.kernels.codecs import image_cache
from penstock.kernels.codecs.image_cache import ImageCache


def _offer(cache: ImageCache, **sizes: int) -> list[str]:
    for name, size in sizes.items():
        cache.offer(name, np.empty(size, np.uint8))
    return [name for name in sizes if cache.find(name) is not None]


def test_keeps_nothing_by_default() -> None:
    assert _offer(ImageCache.from_arguments({}), a=10) == []


def test_threshold_keeps_the_first_that_are_large_enough() -> None:
    assert _offer(ImageCache(100, threshold=20), small=10, a=60, b=60, c=40) == ["a", "c"]


def test_largest_drops_smaller_ones_for_larger() -> None:
    assert _offer(ImageCache(100, keep_largest=True), a=40, b=50, c=80, d=30) == ["c"]


def test_largest_drops_nothing_in_vain() -> None:
    assert _offer(ImageCache(100, keep_largest=True), a=40, b=60, c=50, d=101) == ["a", "b"]


def test_largest_makes_just_enough_room() -> None:
    assert _offer(ImageCache(50, keep_largest=True), a=20, b=30, c=50) == ["c"]
    assert _offer(ImageCache(50, keep_largest=True), a=20, b=30, c=25) == ["a", "b"]
    assert _offer(ImageCache(100, keep_largest=True), a=20, b=30, c=40, d=30) == ["b", "c", "d"]


def test_images_without_a_name_are_not_kept() -> None:
    cache = ImageCache(100)
    cache.offer("", np.empty(10, np.uint8))
    assert cache.find("") is None


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="cache_type"):
        ImageCache.from_arguments({"cache_type": "newest"})


def test_reports_once_that_it_is_full(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        _offer(ImageCache(10, verbose=True), a=10, b=10, c=10)
    assert len([record for record in caplog.records if record.name == image_cache.__name__]) == 1
