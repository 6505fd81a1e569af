"""Helpers of video decoders, tested without videos."""

from __future__ import annotations

from typing import Any, cast

import pytest

from penstock.kernels.codecs.video_engines import DecoderKind, IdleDecoders
from penstock.kernels.codecs.video_pixels import channels_of, check_image_type
from penstock.types import BGR, GRAY, RGB, YCbCr


def kind(name: str) -> DecoderKind:
    return DecoderKind(name, b"", 8, 8, 0, ())


def test_idle_decoders_serve_their_own_kind_the_last_one_first() -> None:
    idle = IdleDecoders()
    assert idle.take(kind("h264")) is None
    for name, decoder in [("vp9", "a"), ("h264", "b"), ("h264", "c"), ("av1", "d")]:
        idle.give_back(kind(name), cast(Any, decoder))
    taken = [idle.take(kind(name)) for name in ("h264", "h264", "h264", "vp9", "av1", "vp9")]
    assert taken == ["c", "b", None, "a", "d", None]


def test_colour_spaces_of_frames() -> None:
    assert [channels_of(image_type) for image_type in (RGB, GRAY, YCbCr)] == [3, 1, 3]
    with pytest.raises(ValueError, match="Unsupported image_type"):
        check_image_type(BGR)
