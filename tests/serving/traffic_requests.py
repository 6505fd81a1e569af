"""Requests, each with its correct answer or expected error.

All data of a good request are made of its identity and of random bytes, so that an answer shows to which request it belongs.
Each input contains the identity, so that it is noticed, too, if inputs of different requests are mixed up.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image
from traffic_models import CACHED, CROP, DEFAULT_FACTOR, FAR_CROP, MAX_BATCH, MAX_PIXELS

INVALID, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"

ASKED = ("fingerprint", "ragged", "several", "crossing", "chain", "twins", "chosen", "cut", "unbatched")
"""The models to which good requests are sent; `chain` calls the models that are not listed."""

CACHED_QUESTIONS = 50
"""The number of different requests to `cached`."""

NOBODY = "nobody"
"""The name of a model that does not exist."""

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Tensor:
    """An input in the form in which it is sent: the declared type and shape, and the bytes."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class Refusal:
    """The error that is expected for a bad request.

    Attributes:
        status: the gRPC status.
        words: the words that the message must contain.
        sample: the position in the request of the only sample that the message may name.
    """

    status: str
    words: tuple[str, ...]
    sample: int = 0

    def fits(self, status: str, message: str) -> bool:
        """Return whether an error is the expected one."""
        # Another number would be a position in the batch, which depends on the other requests.
        named = set(map(int, re.findall(r"sample #?(\d+)", message)))
        return status == self.status and all(word in message for word in self.words) and named <= {self.sample}


@dataclass(frozen=True)
class Request:
    """A request, with its expected answer.

    Attributes:
        kind: ``good``, or the kind of fault.
        model: the model to which it is sent.
        identity: the number that all data of the request contain.
        tensors: the inputs.
        expected: the complete right answer, by output, or the expected error.
        outputs: the outputs that it requests; empty: all.
        parameters: the request's parameters.
    """

    kind: str
    model: str
    identity: int
    tensors: tuple[Tensor, ...]
    expected: Arrays | Refusal
    outputs: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict)


# -- data of requests ----------------------------------------------------------------------------------------------------


def _ints(name: str, values: list[int]) -> Tensor:
    return Tensor(name, "INT64", (len(values), 1), np.array(values, np.int64).tobytes())


def _floats(name: str, rows: np.ndarray) -> Tensor:
    return Tensor(name, "FP32", rows.shape, rows.astype(np.float32).tobytes())


def _bytes(name: str, elements: list[bytes]) -> Tensor:
    data = b"".join(struct.pack("<I", len(element)) + element for element in elements)
    return Tensor(name, "BYTES", (len(elements), 1), data)


def _padded(name: str, files: list[bytes]) -> Tensor:
    """Return files as rows of equal length, padded with zeros, as users of the DALI backend send them."""
    longest = max(map(len, files))
    return Tensor(name, "UINT8", (len(files), longest), b"".join(file.ljust(longest, b"\0") for file in files))


def _images(name: str, images: list[np.ndarray]) -> Tensor:
    return Tensor(name, "UINT8", (len(images), *images[0].shape), b"".join(image.tobytes() for image in images))


def _column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64).reshape(-1, 1)


def _sum(image: np.ndarray) -> int:
    return int(image.sum(dtype=np.int64))


def _png(pixels: np.ndarray) -> bytes:
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + width * 3), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _saved(pixels: np.ndarray, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


_FORMATS = ("JPEG", "JPEG", "PNG", "PNG", "PNG", "PPM", "PPM", "BMP", "TIFF", "JPEG2000")
"""The formats of images, repeated to make some more likely; formats that take long to encode are rare."""


class RequestMaker:
    """Makes requests, each with a unique identity.

    Args:
        seed: the seed of the random numbers; with other seeds, identities differ, too.
        number, makers: the number of this maker, and how many makers share the seed; each of them makes different
            identities.
        models: the models to which good requests are sent, in turn; bad requests are sent to these, or to a model that does not exist.
        single: whether all good requests have one sample.
    """

    def __init__(
        self, seed: int, number: int = 0, makers: int = 1, models: Sequence[str] = ASKED, single: bool = False
    ) -> None:
        self._rng = np.random.default_rng((seed, number))
        self._next, self._step = (1 + seed) * 10_000_000 + number, makers
        self._single = single
        self._random = np.zeros(0, np.uint8)
        self._good: list[Callable[[int], Request]] = [getattr(self, f"_{model}") for model in models]
        faults = {name.removeprefix("_bad_"): getattr(self, name) for name in dir(self) if name.startswith("_bad_")}
        self._bad = {kind: make for kind, make in faults.items() if make(0)[0] in (*models, NOBODY)}

    @property
    def kinds(self) -> list[str]:
        """The kinds of bad requests."""
        return sorted(self._bad)

    def good(self) -> Request:
        """Return a good request."""
        identity = self._identity()
        return self._asking_for_part(self._good[identity // self._step % len(self._good)](identity))

    def bad(self) -> Request:
        """Return a bad request."""
        identity, kind = self._identity(), self.kinds[self._below(len(self._bad))]
        model, tensors, refusal, *outputs = self._bad[kind](identity)
        return Request(kind, model, identity, tuple(tensors), refusal, *outputs)

    def chance(self) -> float:
        """Return a random number from 0 to 1."""
        return self._below(1 << 16) / (1 << 16)

    # -- random parts ----------------------------------------------------------------------------------------------

    def _identity(self) -> int:
        self._next += self._step
        return self._next

    def _take(self, count: int) -> np.ndarray:
        """Return random bytes. Many are drawn at once, which is several times faster than drawing few."""
        if count > len(self._random):
            self._random = self._rng.integers(0, 256, max(count, 1 << 18), np.uint8)
        taken, self._random = self._random[:count], self._random[count:]
        return taken

    def _below(self, limit: int) -> int:
        first, second, third = self._take(3).tolist()
        return (first | second << 8 | third << 16) % limit

    def _count(self, limit: int) -> int:
        """Return a random number of samples for a good request."""
        return 1 if self._single else 1 + self._below(limit)

    def _pixels(
        self, identity: int, least: int = 8, spread: int = 24, extents: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Return an image with an identity in its first pixels."""
        height, width = extents or (least + self._below(spread), least + self._below(spread))
        pixels = self._take(height * width * 3).reshape(height, width, 3).copy()
        pixels.reshape(-1)[:8] = np.frombuffer(struct.pack("<Q", identity), np.uint8)
        return pixels

    def _exact_jpeg(self, identity: int) -> tuple[np.ndarray, bytes]:
        """Return a grey image and its JPEG file, which decodes exactly: each block has a single value, and the values of the first
        four blocks are the bytes of the identity.
        """
        across, down = 2 + self._below(2), 2 + self._below(2)
        blocks = self._take(across * down).copy()
        blocks[:4] = np.frombuffer(struct.pack("<I", identity & 0xFFFFFFFF), np.uint8)
        grey = blocks.reshape(down, across).repeat(8, 0).repeat(8, 1)
        return grey[..., None].repeat(3, 2), _saved(grey, "JPEG", quality=100)

    def _encoded(self, identity: int) -> tuple[np.ndarray, bytes]:
        """Return an image and its file, which decodes exactly, in a random format."""
        kind = _FORMATS[self._below(len(_FORMATS))]
        if kind == "JPEG":
            return self._exact_jpeg(identity)
        pixels = self._pixels(identity)
        return pixels, _png(pixels) if kind == "PNG" else _saved(pixels, kind)

    def _asking_for_part(self, request: Request) -> Request:
        """Return the request unchanged, or changed to request a single output, at random."""
        assert isinstance(request.expected, dict)
        # Triton's cache does not distinguish requests for different outputs.
        if self._below(4) or request.model == CACHED:
            return request
        name = list(request.expected)[self._below(len(request.expected))]
        return replace(request, outputs=(name,), expected={name: request.expected[name]})

    # -- good requests ---------------------------------------------------------------------------------------------

    def _fingerprint(self, identity: int) -> Request:
        made = [self._encoded(identity) for _ in range(self._count(3))]
        corners = np.zeros((len(made), 16, 16, 3), np.uint8)
        for corner, (pixels, _) in zip(corners, made):
            part = pixels[:16, :16]
            corner[: part.shape[0], : part.shape[1]] = part
        expected = {
            "corner": corners,
            "extents": np.array([pixels.shape for pixels, _ in made], np.int32),
            "total": _column([_sum(pixels) for pixels, _ in made]),
        }
        return Request("good", "fingerprint", identity, (_bytes("encoded", [file for _, file in made]),), expected)

    def _ragged(self, identity: int) -> Request:
        extents = (8 + self._below(24), 8 + self._below(24))
        images = [self._pixels(identity, extents=extents) for _ in range(self._count(2))]
        expected = {"mirrored": np.stack(images)[:, :, ::-1]}
        return Request("good", "ragged", identity, (_padded("encoded", [_png(image) for image in images]),), expected)

    def _several(self, identity: int) -> Request:
        made = [self._encoded(identity) for _ in range(self._count(2))]
        numbers = [identity * 4 + index for index in range(len(made))]
        texts = [b"%d " % number + self._take(self._below(40)).tobytes() for number in numbers]
        tensors = (
            _bytes("encoded", [file for _, file in made]),
            _ints("number", numbers),
            _bytes("text", texts),
        )
        expected = {
            "window": np.stack([pixels[:CROP, :CROP] for pixels, _ in made]),
            "odd": _column([number * 2 + 1 for number in numbers]),
            "same": np.array(texts, np.object_).reshape(-1, 1),
            "joined": _column([_sum(pixels) + number for (pixels, _), number in zip(made, numbers)]),
        }
        return Request("good", "several", identity, tensors, expected)

    def _crossing(self, identity: int) -> Request:
        pixels = self._pixels(identity, FAR_CROP, 16)
        tensors = (_images("a", [pixels]), _ints("b", [identity]))
        expected = {"window": pixels[None, :FAR_CROP, :FAR_CROP], "same": _column([identity])}
        return Request("good", "crossing", identity, tensors, expected)

    def _chain(self, identity: int) -> Request:
        pixels, file = self._encoded(identity)
        tensors = (_bytes("encoded", [file]), _ints("tag", [identity]))
        expected = {"half": pixels[None] * np.float32(0.5), "joined": _column([_sum(pixels) + identity])}
        return Request("good", "chain", identity, tensors, expected)

    def _twins(self, identity: int) -> Request:
        count = self._count(3)
        x = self._take(count * (1 + self._below(12))).reshape(count, -1).astype(np.float32)
        x[:, 0] = identity & 0xFFFFFF
        numbers = [identity * 4 + index for index in range(count)]
        expected = {"doubled": x * 2, "next": _column([number + 1 for number in numbers])}
        return Request("good", "twins", identity, (_floats("x", x), _ints("y", numbers)), expected)

    def _cached(self, identity: int) -> Request:
        # There are only a few different requests. The identity is only in the request's id, which the cache does not compare.
        question = self._below(CACHED_QUESTIONS)
        x = np.full((1, 1 + question % 7), question, np.float32)
        expected = {"doubled": x * 2, "next": _column([question + 1])}
        return Request("good", CACHED, identity, (_floats("x", x), _ints("y", [question])), expected)

    def _chosen(self, identity: int) -> Request:
        numbers = [identity * 4 + index for index in range(self._count(3))]
        factor, given = 2 + self._below(50), self._below(3)
        tensors, parameters = (_ints("number", numbers),), {}
        if given == 0:
            factor = DEFAULT_FACTOR
        elif given == 1:
            parameters["factor"] = factor
        else:
            tensors += (_ints("factor", [factor] * len(numbers)),)
        expected = {"product": _column([number * factor for number in numbers])}
        return Request("good", "chosen", identity, tensors, expected, parameters=parameters)

    def _cut(self, identity: int) -> Request:
        rows, columns = self._count(3), 3 + self._below(10)
        x = self._take(rows * columns).reshape(rows, columns).astype(np.float32)
        x[:, 1] = identity & 0xFFFFFF
        lengths = [2 + self._below(columns - 1) for _ in range(rows)]
        x[:, 0] = lengths
        expected = {"parts": np.concatenate([row[:length] for row, length in zip(x, lengths)])[:, None], "same": x}
        return Request("good", "cut", identity, (_floats("x", x),), expected)

    def _unbatched(self, identity: int) -> Request:
        of_twins = self._twins(identity)
        assert isinstance(of_twins.expected, dict)
        x, y = of_twins.tensors
        # Without batching, one number for each sample makes a row, not a column.
        expected = of_twins.expected | {"next": of_twins.expected["next"][:, 0]}
        return replace(of_twins, model="unbatched", tensors=(x, replace(y, shape=y.shape[:1])), expected=expected)

    # -- bad requests ----------------------------------------------------------------------------------------------

    def _of_file(self, file: bytes, *words: str) -> tuple[str, list[Tensor], Refusal]:
        return "fingerprint", [_bytes("encoded", [file])], Refusal(INVALID, ("decoders.image", *words))

    def _bad_no_bytes(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        return self._of_file(b"")

    def _bad_garbage(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        return self._of_file(b"\xf1\xf1" + self._take(20 + self._below(300)).tobytes())

    def _bad_half_a_png(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        file = _png(self._pixels(identity))
        return self._of_file(file[: len(file) // 2])

    def _bad_start_of_a_jpeg(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        _, file = self._exact_jpeg(identity)
        return self._of_file(file[: 30 + self._below(100)])

    def _bad_jpeg_2000_without_tiles(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        file = bytearray(_saved(self._pixels(identity), "JPEG2000"))
        # The fields Lsiz, Rsiz, Xsiz, Ysiz, XOsiz, YOsiz, XTsiz: a library divides by XTsiz, which is set to 0.
        struct.pack_into(">I", file, file.index(b"\xff\x51") + 22, 0)
        return self._of_file(bytes(file))

    def _bad_garbage_for_an_ensemble(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_bytes("encoded", [self._take(200).tobytes()]), _ints("tag", [identity])]
        return "chain", tensors, Refusal(INVALID, ("decoders.image",))

    def _bad_one_of_three(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        files = [self._encoded(identity)[1] for _ in range(3)]
        spoilt = self._below(3)
        files[spoilt] = b"\xf1" + files[spoilt][1:20]
        words = ("decoders.image", f"sample {spoilt} of this request")
        return "fingerprint", [_bytes("encoded", files)], Refusal(INVALID, words, spoilt)

    def _bad_too_many_pixels(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        return self._of_file(_png(np.zeros((65, MAX_PIXELS // 64, 3), np.uint8)), "max_pixels")

    def _bad_type(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_floats("x", np.ones((1, 2))), Tensor("y", "INT32", (1, 1), struct.pack("<i", 5))]
        return "twins", tensors, Refusal(INVALID, ("'y'", "INT32", "INT64"))

    def _bad_type_for_the_cache(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_floats("x", np.ones((1, 2))), Tensor("y", "INT32", (1, 1), struct.pack("<i", 5))]
        return CACHED, tensors, Refusal(INVALID, ("'y'", "INT32", "INT64"))

    def _bad_rank(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_floats("x", np.ones((1, 2, 3))), _ints("y", [identity])]
        return "twins", tensors, Refusal(INVALID, ("shape", "'x'", "[1,2,3]"))

    def _bad_size(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [Tensor("x", "FP32", (1, 5), bytes(12)), _ints("y", [identity])]
        return "twins", tensors, Refusal(INVALID, ("12", "'x'", "20"))

    def _bad_counts(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_floats("x", np.ones((2, 3))), _ints("y", [identity])]
        return "twins", tensors, Refusal(INVALID, ("batch size",))

    def _bad_too_many_samples(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        count = MAX_BATCH + 1
        tensors = [_floats("x", np.ones((count, 3))), _ints("y", [identity] * count)]
        return "twins", tensors, Refusal(INVALID, ("batch", f"{MAX_BATCH}"))

    def _bad_missing_input(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        return "crossing", [_ints("b", [identity])], Refusal(INVALID, ("expected 2 inputs but got 1",))

    def _bad_unknown_output(self, identity: int) -> tuple[str, list[Tensor], Refusal, tuple[str, ...]]:
        request = self._twins(identity)
        return "twins", list(request.tensors), Refusal(INVALID, ("output", "'nothing'")), ("nothing",)

    def _bad_unknown_model(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        return NOBODY, [_ints("y", [identity])], Refusal(NOT_FOUND, (f"'{NOBODY}'",))

    def _bad_crop_outside(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        tensors = [_images("a", [self._pixels(identity, 8, 40)]), _ints("b", [identity])]
        return "crossing", tensors, Refusal(INVALID, ("crop", "sample 0 of this request"))

    def _bad_small_image(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        files = [self._encoded(identity)[1], _png(self._pixels(identity, 3, 4))]
        tensors = [_bytes("encoded", files), _ints("number", [identity] * 2), _bytes("text", [b"a", b"b"])]
        return "several", tensors, Refusal(INVALID, ("crop", "sample 1 of this request"), 1)

    def _bad_mixed_shapes(self, identity: int) -> tuple[str, list[Tensor], Refusal]:
        files = [_png(self._pixels(identity, 8, 4)), _png(self._pixels(identity, 12, 4))]
        return "ragged", [_padded("encoded", files)], Refusal(INVALID, ("different shapes", "'mirrored'"))
