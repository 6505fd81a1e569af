"""Mutations of files: of arbitrary bytes, and of fields of their formats."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from random import Random

from fuzzing.image_seeds import png_chunk

_BYTES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xC0, 0xFE, 0xFF)
_NUMBERS = (
    *(0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 1000, 4095, 4096),
    *(0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFF, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF),
    *(1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
_LONGEST = 1 << 18
"""The maximum size of a mutated file, in bytes."""

Mutation = Callable[[Random, bytearray], None]


def mutated(rng: Random, format: str, seed: bytes, others: Sequence[bytes]) -> bytes:
    """Return a seed with one or more mutations, of arbitrary bytes and of fields of its format.

    Args:
        format: the seed's format.
        others: other seeds, of which parts are inserted.
    """
    data = bytearray(seed)
    own = _OF_FORMATS.get(format)
    for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 6))):
        if not data:
            break
        if own is not None and rng.random() < 0.6:
            own(rng, data)
        elif rng.random() < 0.1:
            _splice(rng, data, rng.choice(others))
        else:
            rng.choice(_ANYWHERE)(rng, data)
        del data[_LONGEST:]
    return bytes(data)


# -- of any bytes ----------------------------------------------------------------------------------------------------


def _place(rng: Random, data: bytearray) -> int:
    """Return a random position in the data. Headers, which are short, are hit as often as all the rest of the file."""
    size = len(data)
    return rng.randrange(min(size, rng.choice((32, 128, 512, size, size, size))))


def _flip_bits(rng: Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        data[_place(rng, data)] ^= 1 << rng.randrange(8)


def _set_bytes(rng: Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 4))):
        data[_place(rng, data)] = rng.choice(_BYTES) if rng.random() < 0.7 else rng.randrange(256)


def _set_number(rng: Random, data: bytearray) -> None:
    put_number(rng, data, _place(rng, data), rng.choice((1, 2, 2, 4, 4, 8)), rng.choice("<>"))


def put_number(rng: Random, data: bytearray, place: int, size: int, order: str) -> None:
    """Write a random number, often a boundary value or a number near the current one, at ``place``."""
    if place + size > len(data):
        return
    byte_order = "little" if order == "<" else "big"
    if rng.random() < 0.4:
        number = int.from_bytes(data[place : place + size], byte_order) + rng.choice((-2, -1, 1, 2, 8, 255, -256))
    else:
        number = rng.choice(_NUMBERS)
    data[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, byte_order)


def _truncate(rng: Random, data: bytearray) -> None:
    del data[_place(rng, data) if rng.random() < 0.5 else rng.randrange(len(data)) :]


def _span(rng: Random, data: bytearray) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(start + rng.choice((1, 2, 4, 12, 64, 300)), len(data))


def _delete(rng: Random, data: bytearray) -> None:
    start, end = _span(rng, data)
    del data[start:end]


def _duplicate(rng: Random, data: bytearray) -> None:
    start, end = _span(rng, data)
    data[start:start] = data[start:end] * rng.choice((1, 1, 2, 30))


def _insert(rng: Random, data: bytearray) -> None:
    start = _place(rng, data)
    data[start:start] = rng.randbytes(rng.choice((1, 2, 4, 16, 100)))


def _overwrite(rng: Random, data: bytearray) -> None:
    start, end = _span(rng, data)
    kind = rng.random()
    size = end - start
    data[start:end] = bytes(size) if kind < 0.3 else b"\xff" * size if kind < 0.6 else rng.randbytes(size)


def _move(rng: Random, data: bytearray) -> None:
    start, end = _span(rng, data)
    target = _place(rng, data)
    size = min(end - start, len(data) - target)
    data[target : target + size] = data[start : start + size]


_ANYWHERE: tuple[Mutation, ...] = (
    *(_flip_bits, _flip_bits, _set_bytes, _set_bytes, _set_number, _set_number),
    *(_truncate, _delete, _duplicate, _insert, _overwrite, _move),
)


def _splice(rng: Random, data: bytearray, other: bytes) -> None:
    """Continue with another file, or insert a part of it."""
    if not other:
        return
    start = rng.randrange(len(other))
    place = _place(rng, data)
    if rng.random() < 0.5:
        data[place:] = other[start:]
    else:
        data[place:place] = other[start : start + rng.choice((4, 30, 300))]


# -- of formats' fields ------------------------------------------------------------------------------------------------

Chunk = tuple[int, int, int]
"""The offsets of a chunk of a file, of its contents, and of its end."""


def _edit_chunks(rng: Random, data: bytearray, chunks: list[Chunk]) -> int | None:
    """Delete, duplicate or exchange chunks; or return the number of a chunk whose contents the caller should change."""
    if not chunks:
        return None
    number = rng.randrange(len(chunks))
    start, _, end = chunks[number]
    kind = rng.random()
    if kind < 0.1:
        del data[start:end]
    elif kind < 0.2:
        data[start:start] = data[start:end] * rng.choice((1, 1, 40))
    elif kind < 0.3:
        other, _, other_end = rng.choice(chunks)
        data[start:end] = data[other:other_end]
    else:
        return number
    return None


def _jpeg_chunks(data: bytearray) -> list[Chunk]:
    chunks, position = [], 2
    while position + 4 <= len(data) and data[position] == 0xFF:
        end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        chunks.append((position, position + 4, min(end, len(data))))
        if data[position + 1] == 0xDA:
            break
        position = end
    return chunks


def _mutate_jpeg(rng: Random, data: bytearray) -> None:
    chunks = _jpeg_chunks(data)
    number = _edit_chunks(rng, data, chunks)
    if number is None:
        return
    start, content, end = chunks[number]
    kind = rng.random()
    if kind < 0.15:
        data[start + 1] = rng.choice(
            (0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC9, 0xCA, 0xC4, 0xDB, 0xDD, 0xDA, 0xE0, 0xEE, 0xD9)
        )
    elif kind < 0.25:
        put_number(rng, data, start + 2, 2, ">")
    elif kind < 0.4:
        # Write a marker, such as a restart or the end of the image, into the data of the scan.
        place = rng.randrange(min(chunks[-1][2], len(data) - 1), len(data))
        data[place : place + 2] = bytes([0xFF, rng.choice((0, 0xD0, 0xD1, 0xD7, 0xD9, 0xFF, 0xDA))])
    elif kind < 0.5:
        data[start:start] = b"\xff\xdd\0\4" + rng.choice((1, 2, 3, 0xFFFF)).to_bytes(2, "big")
    elif content < end:
        place = rng.randrange(content, min(end, content + rng.choice((6, 20, 200))))
        _set_field(rng, data, place)


def _set_field(rng: Random, data: bytearray, place: int, order: str = ">") -> None:
    """Change one byte, or a number, in a field at ``place``."""
    if place >= len(data):
        return
    if rng.random() < 0.6:
        data[place] = rng.choice((*_BYTES, *range(0x10, 0x45, 0x11), 0x12, 0x21, 0x41, 0x14, rng.randrange(256)))
    else:
        put_number(rng, data, place, rng.choice((2, 4)), order)


def _png_chunks(data: bytearray) -> list[Chunk]:
    chunks, position = [], 8
    while position + 12 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        end = position + 12 + size
        if end > len(data):
            break
        chunks.append((position, position + 8, end))
        position = end
    return chunks


def _mutate_png(rng: Random, data: bytearray) -> None:
    """Change chunks, and correct their checksums, because most readers stop at a wrong checksum."""
    chunks = _png_chunks(data)
    number = _edit_chunks(rng, data, chunks)
    if number is None:
        return
    start, content, end = chunks[number]
    name, body = bytes(data[start + 4 : content]), bytearray(data[content : end - 4])
    if name in (b"IDAT", b"fdAT") and rng.random() < 0.6:
        _change_packed(rng, body)
    elif body:
        _set_field(rng, body, rng.randrange(len(body)))
    if rng.random() < 0.05:
        name = rng.choice((b"IDAT", b"PLTE", b"tRNS", b"acTL", b"fcTL", b"eXIf", b"iCCP", b"gAMA", b"IEND", b"zTXt"))
    data[start:end] = png_chunk(name, bytes(body))


def _change_packed(rng: Random, body: bytearray) -> None:
    """Decompress zlib data, change the result, and compress it again."""
    try:
        lines = bytearray(zlib.decompress(body))
    except zlib.error:
        return
    if lines:
        rng.choice((_set_bytes, _truncate, _duplicate, _delete))(rng, lines)
    body[:] = zlib.compress(bytes(lines))


def _riff_chunks(data: bytearray, order: str = "<") -> list[Chunk]:
    chunks, position = [], 12
    byte_order = "little" if order == "<" else "big"
    while position + 8 <= len(data):
        size = int.from_bytes(data[position + 4 : position + 8], byte_order)
        end = min(position + 8 + size + size % 2, len(data))
        chunks.append((position, position + 8, end))
        position = end
    return chunks


def _mutate_riff(rng: Random, data: bytearray) -> None:
    """Mutate a WebP or WAV."""
    _mutate_chunks(rng, data, _riff_chunks(data), 4, "<")


def _mutate_chunks(rng: Random, data: bytearray, chunks: list[Chunk], size_at: int, order: str) -> None:
    number = _edit_chunks(rng, data, chunks)
    if number is None:
        return
    start, content, end = chunks[number]
    if rng.random() < 0.25:
        put_number(rng, data, start + size_at, 4, order)
    elif content < end:
        _set_field(rng, data, rng.randrange(content, min(end, content + rng.choice((20, 60, 1000)))), order)


def _boxes(data: bytearray, start: int = 0, end: int | None = None, depth: int = 0) -> list[Chunk]:
    """Return the boxes of ISO media files (MP4, AVIF, JP2), nested ones included."""
    chunks: list[Chunk] = []
    end = len(data) if end is None else end
    while start + 8 <= end and len(chunks) < 200:
        size = int.from_bytes(data[start : start + 4], "big")
        stop = start + size if 8 <= size <= end - start else end
        chunks.append((start, start + 8, stop))
        if depth < 7 and bytes(data[start + 4 : start + 8]) in _CONTAINERS:
            inside = start + (12 if bytes(data[start + 4 : start + 8]) in (b"meta", b"stsd", b"dref") else 8)
            chunks += _boxes(data, inside, stop, depth + 1)
        start = stop
    return chunks


_CONTAINERS = {
    b"moov",
    b"trak",
    b"mdia",
    b"minf",
    b"stbl",
    b"dinf",
    b"meta",
    b"iprp",
    b"ipco",
    b"jp2h",
    b"stsd",
    b"udta",
}


def _mutate_boxes(rng: Random, data: bytearray) -> None:
    _mutate_chunks(rng, data, _boxes(data), 0, ">")


def _mutate_jpeg2k(rng: Random, data: bytearray) -> None:
    """Mutate the boxes around a code stream, or its markers' segments."""
    start = data.find(b"\xff\x4f\xff\x51")
    if start > 0 and rng.random() < 0.25:
        _mutate_boxes(rng, data)
        return
    if start < 0:
        return
    chunks, position = [], start + 2
    while position + 4 <= len(data) and data[position] == 0xFF and len(chunks) < 60:
        marker, size = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        chunks.append((position, position + 4, min(position + 2 + size, len(data))))
        position += 2 + size
        if marker == 0x90:
            # Skip the rest of this tile-part, its header and its data: continue at the next marker SOT.
            following = data.find(b"\xff\x90", position)
            position = following if following >= 0 else len(data)
    if chunks and rng.random() < 0.35:
        # The sizes of the image and of its tiles are in the first segment.
        place = chunks[0][1] + rng.choice((2, 6, 10, 14, 18, 22, 26, 30))
        put_number(rng, data, place, 4, ">")
        return
    _mutate_chunks_of_markers(rng, data, chunks)


def _mutate_chunks_of_markers(rng: Random, data: bytearray, chunks: list[Chunk]) -> None:
    number = _edit_chunks(rng, data, chunks)
    if number is None:
        return
    start, content, end = chunks[number]
    kind = rng.random()
    if kind < 0.1:
        data[start + 1] = rng.choice(
            (0x51, 0x52, 0x53, 0x5C, 0x5D, 0x5E, 0x5F, 0x55, 0x57, 0x58, 0x60, 0x61, 0x90, 0x93)
        )
    elif kind < 0.2:
        put_number(rng, data, start + 2, 2, ">")
    elif content < end:
        _set_field(rng, data, rng.randrange(content, end))


def _mutate_tiff(rng: Random, data: bytearray) -> None:
    """Mutate an entry of a directory: its tag, type, count or value."""
    order = ">" if data[:2] == b"MM" else "<"
    if len(data) < 8:
        return
    if rng.random() < 0.08:
        put_number(rng, data, 4, 4, order)
        return
    (directory,) = struct.unpack_from(order + "I", data, 4)
    if directory + 2 > len(data):
        return
    (count,) = struct.unpack_from(order + "H", data, directory)
    entry = directory + 2 + 12 * rng.randrange(min(max(count, 1), 40))
    field = rng.random()
    if field < 0.15:
        _put_short(data, entry, order, rng.choice(_TIFF_TAGS))
    elif field < 0.25:
        _put_short(data, entry + 2, order, rng.choice((*range(14), 16, 17, 18, 0xFFFF)))
    elif field < 0.45:
        put_number(rng, data, entry + 4, 4, order)
    elif field < 0.55:
        put_number(rng, data, directory, 2, order)
    elif rng.random() < 0.5:
        put_number(rng, data, entry + 8, 4, order)
    else:
        _put_short(data, entry + 8, order, rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64, 32773, 34712, 50001)))


_TIFF_TAGS = (
    *(254, 256, 257, 258, 259, 262, 266, 273, 274, 277, 278, 279, 284, 292, 293, 317, 320, 322, 323, 324, 325),
    *(330, 338, 339, 347, 512, 513, 514, 529, 530, 531, 532, 34675, 34665),
)


def _put_short(data: bytearray, place: int, order: str, number: int) -> None:
    if place + 2 <= len(data):
        struct.pack_into(order + "H", data, place, number)


def _mutate_bitmap(rng: Random, data: bytearray) -> None:
    """Mutate a field of the headers."""
    place = rng.choice((2, 10, 14, 18, 22, 26, 28, 30, 34, 46, 50, 54, 58, 62))
    put_number(rng, data, place, 2 if place in (26, 28) else 4, "<")


def _mutate_gif(rng: Random, data: bytearray) -> None:
    """Mutate sizes, or the fields of a block."""
    starts = [6, *(i for i in range(13, len(data)) if data[i] in (0x2C, 0x21))]
    place = rng.choice(starts[:40]) + rng.randrange(10)
    _set_field(rng, data, place, "<")


_WORDS = (b"0", b"-1", b"1", b"65535", b"65536", b"99999999999", b"4294967297", b"1e9", b"nan", b"", b"P7", b"#", b"\n")


def _mutate_text(rng: Random, data: bytearray) -> None:
    """Mutate a word of a text, such as the header of a PNM file, an index, or JSON."""
    text = bytes(data[:2000])
    spans, start = [], None
    for i, byte in enumerate(text):
        is_word = byte not in b' \t\n\r,:[]{}"'
        if is_word and start is None:
            start = i
        elif not is_word and start is not None:
            spans.append((start, i))
            start = None
    if spans:
        start, end = rng.choice(spans[: rng.choice((4, len(spans)))])
        data[start:end] = rng.choice((*_WORDS, b"null", b"{}", b"[]", b'"a"', b"\xff\xfe", b"../a"))


def _mutate_matroska(rng: Random, data: bytearray) -> None:
    """Mutate the length and contents of an element."""
    starts = [
        i
        for i in range(min(len(data), 800))
        if data[i : i + 1] in (b"\x1a", b"\x18", b"\x15", b"\x16", b"\xae", b"\xa3")
    ]
    if starts:
        _set_field(rng, data, rng.choice(starts) + rng.randrange(12))


def _mutate_video(rng: Random, data: bytearray) -> None:
    if data[4:8] == b"ftyp" or data[4:8] in (b"wide", b"moov"):
        _mutate_boxes(rng, data)
    elif data[:4] == b"RIFF":
        _mutate_riff(rng, data)
    elif data[:4] == b"\x1aE\xdf\xa3":
        _mutate_matroska(rng, data)
    else:
        _set_bytes(rng, data)


def _mutate_flac(rng: Random, data: bytearray) -> None:
    """Mutate the metadata blocks' fields."""
    _set_field(rng, data, 4 + rng.randrange(min(60, len(data))))


def _mutate_sound(rng: Random, data: bytearray) -> None:
    if data[:4] in (b"RIFF", b"RF64"):
        _mutate_riff(rng, data)
    elif data[:4] == b"FORM":
        _mutate_chunks(rng, data, _riff_chunks(data, ">"), 4, ">")
    else:
        _set_field(rng, data, rng.randrange(min(64, len(data))), rng.choice("<>"))


def _mutate_npy(rng: Random, data: bytearray) -> None:
    """Mutate the length of the header, or a word of it."""
    if rng.random() < 0.2:
        put_number(rng, data, 8, 2, "<")
        return
    old = bytes(data[10:128])
    for found, replacements in rng.sample(_NPY_WORDS, len(_NPY_WORDS)):
        if found in old:
            new = old.replace(found, rng.choice(replacements), 1)
            # Pad with spaces to keep the header's length.
            data[10:128] = new.rstrip()[: len(old) - 1].ljust(len(old) - 1) + b"\n" if rng.random() < 0.8 else new
            return


_NPY_WORDS = (
    (b"(", (b"(-", b"(99999999999, ", b"(0, ", b"((", b"(" * 60, b"(1e5, ", b"(True, ", b"(2**70, ")),
    (b"'<", (b"'>", b"'|", b"'=", b"'", b"'<9", b"[('a', '<")),
    (b"False", (b"True", b"0", b"None", b"'F'", b"[]", b"__import__('os')")),
    (b"descr", (b"desc", b"shape", b"fortran_order")),
    (b"f4", (b"O8", b"V9", b"U3", b"f16", b"c8", b"M8[s]", b"i3", b"f2", b"S0")),
    (b"}", (b"", b"}}", b", 'x': 1}", b"\xff}", b"\0}")),
)


def _mutate_record(rng: Random, data: bytearray) -> None:
    """Mutate numbers near the start, where records and protobuf messages have lengths."""
    _set_field(rng, data, rng.randrange(min(len(data), 120)), "<")


_OF_FORMATS: dict[str, Mutation] = {
    "jpeg": _mutate_jpeg,
    "png": _mutate_png,
    "webp": _mutate_riff,
    "bmp": _mutate_bitmap,
    "pnm": _mutate_text,
    "tiff": _mutate_tiff,
    "jpeg2k": _mutate_jpeg2k,
    "gif": _mutate_gif,
    "avif": _mutate_boxes,
    "wav": _mutate_riff,
    "flac": _mutate_flac,
    "sound": _mutate_sound,
    "video": _mutate_video,
    "npy": _mutate_npy,
    "text": _mutate_text,
    "record": _mutate_record,
    "chunks": _mutate_record,
}
