"""Reading messages in protobuf's encoding, field by field, for formats of which two or three fields are wanted.

Source: protobuf's description of its encoding.
"""

from __future__ import annotations

from collections.abc import Iterator


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a protobuf message; single numbers are given as the bytes that hold them."""
    position = 0
    while position < len(message):
        tag, position = varint(message, position)
        kind = tag & 7
        if kind == 2:
            size, position = varint(message, position)
            end = position + size
        elif kind == 0:
            end = varint(message, position)[1]
        elif kind in (1, 5):
            end = position + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"unknown wire type {kind}")
        if end > len(message):
            raise ValueError("a field reaches beyond the message")
        yield tag >> 3, message[position:end]
        position = end


def varint(message: memoryview, position: int) -> tuple[int, int]:
    """A number of variable length and the position behind it."""
    number = shift = 0
    while True:
        if position >= len(message):
            raise ValueError("a number is cut short")
        byte = message[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def integers(packed: memoryview) -> Iterator[int]:
    """The numbers of a packed list of int32 or int64."""
    position = 0
    while position < len(packed):
        number, position = varint(packed, position)
        yield number - (1 << 64) if number >> 63 else number
