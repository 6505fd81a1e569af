"""Cases to measure for each public operator: its inputs, its call, and the same work in other libraries.

An operator without declared cases gets the call that the documentation shows, on inputs made from its schema, so a new
operator appears in the table automatically. DALI and the other libraries are not imported before they are called.
"""

from __future__ import annotations

import enum
import importlib
import io
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from libraries import torchvision_functional

from penstock import fn  # noqa: F401  (loads the operators)
from penstock.schema import Schema
from penstock.schema.catalogue import public_operators
from penstock.schema.examples import Call, shown_calls, why_unswept

Work = Callable[..., Any]
"""A function from a module (Penstock's or DALI's) and the inputs to the outputs."""
Inputs = list[list[np.ndarray]]
"""A batch: a list of samples for each input."""
Peer = Callable[["Libraries"], Callable[..., Any]]
"""A function that returns, for another library, a function that does the same work for one sample."""

BATCH = 8
RATE = 16000
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
TURN = [0.9, -0.2, 30.0, 0.2, 0.9, -10.0]
BOX = np.full((5, 5), 0.04, np.float32)
UNEVEN = np.random.default_rng(0).dirichlet(np.ones(25)).reshape(5, 5).astype(np.float32)
# Libraries whose functions take tensors; for these, channels become the first dimension of images, without a copy.
TENSOR_LIBRARIES = ("torch", "torchvision", "torchaudio")
_MODULES = {
    "A": "albumentations",
    "F": "torchvision.transforms.v2.functional",
    "T": "torchvision.transforms.v2",
    "IM": "torchvision.transforms.v2.InterpolationMode",
    "Image": "PIL.Image",
    "ImageEnhance": "PIL.ImageEnhance",
    "ImageOps": "PIL.ImageOps",
    "ImageDraw": "PIL.ImageDraw",
    "ImageFont": "PIL.ImageFont",
    "ImageFilter": "PIL.ImageFilter",
    "ndimage": "scipy.ndimage",
    "signal": "scipy.signal",
    "special": "scipy.special",
    "scipy_fft": "scipy.fft",
    "AF": "torchaudio.functional",
    "kaldi": "torchaudio.compliance.kaldi",
}


class Libraries:
    """Other libraries, as attributes with short names; each is imported when it is first needed."""

    def __getattr__(self, name: str) -> Any:
        if _MODULES.get(name, name).startswith("torchvision"):
            torchvision_functional()  # imports torchvision even if its compiled part cannot be loaded
        module = importlib.import_module(_MODULES.get(name, name))
        setattr(self, name, module)
        return module


@dataclass(frozen=True)
class Source:
    """A source of samples for an input.

    Attributes:
        make: a function that makes a sample from a random generator and the sample's number.
        layout: the layout of all samples.
    """

    make: Callable[[np.random.Generator, int], np.ndarray]
    layout: str = ""


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        operator: the operator's name in `fn`, or "pipeline" for several operators.
        title: the call and its input, as text.
        sources: the sources of the inputs.
        work: the call.
        peers: functions that do the same work in other libraries, by library.
        dali: whether DALI's operator of this name accepts these arguments.
        conditionals: whether the pipeline has branches that depend on samples.
        reason: why the best peer is about as fast as Penstock, or faster.
    """

    operator: str
    title: str
    sources: tuple[Source, ...]
    work: Work
    peers: Mapping[str, Peer] = field(default_factory=dict)
    dali: bool = True
    conditionals: bool = False
    reason: str = ""


class Batches:
    """Makes batches, each of new samples; all candidates get the current batch.

    Attributes:
        size: the number of samples in a batch.
        inputs: the current batch.
    """

    def __init__(self, case: Case, size: int) -> None:
        self._sources, self.size = case.sources, size
        self._rng = np.random.default_rng(0)
        self._made = 0
        self.inputs: Inputs = []

    def renewed(self) -> Inputs:
        """Make a new batch, which becomes the current one; return it."""
        numbers = range(self._made, self._made + self.size)
        self._made += self.size
        return [[source.make(self._rng, number) for number in numbers] for source in self._sources]

    def source(self, number: int) -> Callable[[], list[np.ndarray]]:
        """Return a function that returns the current samples of an input."""
        return lambda: self.inputs[number]


_COPIES = "a copy, which memory bounds"
_BATCH = "a batch's Python takes 0.13 ms, half of it to feed and run any pipeline, and up to 0.23 from cold caches (load 3 to 6)"
_UNTRIED = "no attempt yet"
# The reasons for rows that have none themselves, by operator.
_REASONS = {
    "argmax": "columns are compared side by side; NumPy and PyTorch compare them one after the other",
    "audio_resample": "the window is DALI's, value by value: 32 products a sample; ratios that are not simple take three times as long",
    "bb_flip": _BATCH,
    "brightness": "in no cache, at a load of 11: the kernel 242 us, OpenCV's 213, a copy 182; planning takes 44 us of Python a sample",
    "brightness_contrast": "in no cache, at a load of 11: the kernel 242 us, OpenCV's 213, a copy 182; planning takes 44 us of Python a sample",
    "cast": "memory; in no cache, at a load of 11: to floats 300 us (NumPy 497), to bytes 579 (OpenCV 555)",
    "cat": "copies, past the caches; a batch's Python takes 0.2 ms, 0.8 from cold caches (load 11)",
    "ctc_decode": "its kernel takes 16 us for a sample; the rest is Python's, for the batch. The peer checks nothing",
    "draw_boxes": "the image is copied on both sides, which takes half of the time",
    "draw_text": "at a load of 12, the kernel takes 93 us, and a copy of the image 182; a batch takes one call",
    "color_space_conversion": "a matrix of floats, as DALI; OpenCV's weights are integers",
    "contrast": "in no cache, at a load of 11: the kernel 242 us, OpenCV's 213, a copy 182; planning takes 44 us of Python a sample",
    "coord_transform": _BATCH,
    "copy": "a copy, past the caches; a batch's Python takes 0.07 ms, 0.4 from cold caches (load 11)",
    "crop": "a batch copies 1.2 MB; its Python takes 0.16 ms, 0.8 from cold caches (load 11)",
    "encoders.flac": "libsndfile itself computes it, from integers that are rounded here",
    "encoders.wav": "rounded and written here",
    "erase": "a copy, past the caches; a batch's Python takes 0.18 ms, 0.6 from cold caches (load 11)",
    "experimental.remap": "OpenCV's weights have 5 bits of position; ours are exact, as on a GPU",
    "flip": "a copy; rows not mirrored go past the caches: 1.47 of OpenCV's time, through them 1.60, the same if read next (load 7)",
    "jpeg_compression_distortion": "libjpeg-turbo computes it everywhere",
    "laplacian": "integers are summed, as OpenCV does; floats of 3.7 MB are written",
    "lookup_table": "memory; at a load of 8: the kernel 642 us, OpenCV's 754, filling 3.7 MB 393; past the cache it took longer",
    "multi_paste": "copying takes 21 us a sample; the rest is one batch's Python, for four steps, of which two supply constants (load 2)",
    "noise.gaussian": "DALI's generator and distribution, number by number: 1.25 blocks of Philox (4 ns), a logarithm and a cosine",
    "noise.shot": "DALI's Poisson distribution, number by number; the first three blocks of a number are drawn in vectors",
    "one_hot": _BATCH,
    "ones_like": "a fill; planning a batch takes 35 us of Python, for samples of 16x16",
    "pad": "copying and filling, past the caches; a batch's Python takes 0.26 ms, 1.1 from cold caches (load 11)",
    "paste": "copying and filling takes 18 us here and 17 there; planning new sizes takes 20 to 37 us of Python a sample, from cold caches",
    "paste_masks": "of the kernel's 551 us, filling 6 MB with zeros takes 240 to 450 (load 12); the peer's np.zeros leaves that to the system",
    "pillow_function": "sums of floats in Pillow's order, in vectors",
    "power_spectrum": "at a load of 11, SciPy's transform takes 385 to 586 us, and the squares 38; DALI's transform is another library's",
    "preemphasis_filter": "memory; in no cache, at a load of 11: the kernel 67 us, NumPy 71, a copy 53",
    "random.beta": "DALI's numbers, bit for bit; of a number, three blocks take 14 ns, a logarithm 5, a root and a quotient 9 (load 2)",
    "random.coin_flip": "Philox, with a counter for each number, as DALI; NumPy's generator is simpler",
    "random.normal": "DALI's generator and distribution: 1.25 blocks of Philox (4 of 7 ns), and the C library's logarithm and cosine",
    "random.uniform": "Philox, with a counter for each number, as DALI; NumPy's generator is simpler",
    "random_crop_generator": "a batch takes some 70 us of Python; reading the shapes as one array gained nothing",
    "random_resized_crop": "the filter is in float32, as DALI's; the peers' are in fixed point, or without antialiasing",
    "reductions.max": "in no cache, at a load of 11: the kernel 67 us, NumPy 72, OpenCV 96; planning takes 36 us of Python a sample",
    "reductions.mean": "in no cache, at a load of 11: exact sums 93 us, OpenCV's 106; planning takes 39 us of Python a sample",
    "reductions.mean_square": "exact sums of 256 squares, joined in DALI's order; in no cache, at a load of 11: 128 us, OpenCV's norm 87",
    "reductions.min": "as `max`: in no cache, at a load of 11: the kernel 67 us, NumPy 72, OpenCV 96; planning takes 36 us of Python a sample",
    "reductions.rms": "as `mean_square`: exact sums of 256 squares, joined in DALI's order; in no cache, at a load of 11: 128 us, OpenCV's norm 87",
    "reductions.std_dev": "float32 squares, rounded at each addition, in DALI's order, so not integers: 227 us (load 7); OpenCV sums integers",
    "reductions.variance": "float32 squares, rounded at each addition, in DALI's order, so not integers: 227 us (load 7); OpenCV sums integers",
    "resize": "weights are float32, as DALI's; the peer's are integers of 8 to 16 bits",
    "roi_random_crop": "a batch takes some 23 us of Python",
    "segmentation.random_object_bbox": "objects are found and drawn sample by sample, in Python; planning equal shapes once gained 2 %",
    "sequence_rearrange": "a copy, as the peer's; planning a batch takes 70 us of Python, for small samples",
    "slice": "a copy, past the caches; the box comes from two inputs, and a batch's Python takes 0.4 ms, 1.2 from cold caches (load 11)",
    "softmax": "exponentials in float64, in vectors, to two units in the last place; the peers' are in float32",
    "stack": "copies, past the caches; what Python takes of a batch is as for `cat`",
    "standardize": "NumPy itself computes it, in as many steps as the peer; the rest is Python's for the batch",
    "top_k": _BATCH,
    "transpose": "memory; in no cache, at a load of 11: the kernel 176 us, OpenCV's 183, a copy 182",
    "zeros_like": _COPIES,
}


def cases() -> Iterator[Case]:
    """Yield all rows: the declared ones of each operator, or the one generated from its schema."""
    for case in _cases():
        yield case if case.reason else replace(case, reason=_REASONS.get(case.operator, _UNTRIED))


def _cases() -> Iterator[Case]:
    declared = _declared()
    for _, schema in public_operators():
        if schema.fn_path in declared:
            yield from declared.pop(schema.fn_path)
        elif not why_unmeasured(schema):
            yield _generated(schema)
    yield from declared.pop("pipeline")
    if declared:
        raise LookupError(f"There are cases of operators that are not public: {', '.join(declared)}")


def why_unmeasured(schema: Schema) -> str:
    """Return the reason why an operator without declared cases has no row; empty if it has one."""
    if "cpu" not in schema.devices:
        return "it runs on GPUs alone"
    if schema.touches_files:
        return "it reads files: `readers.py` and `video.py` measure readers"
    return why_unswept(schema)


def unmeasured() -> dict[str, str]:
    """Return the public operators without a row, and the reasons."""
    declared = _declared()
    reasons = {
        schema.fn_path: why_unmeasured(schema) for _, schema in public_operators() if schema.fn_path not in declared
    }
    return {name: reason for name, reason in reasons.items() if reason}


# Inputs


@cache
def _canvas() -> np.ndarray:
    """Return an image of smooth colours with some noise, from which pictures are cut."""
    rng = np.random.default_rng(0)
    size = 2400
    places = np.arange(size, dtype=np.float32)[:, None] / 37
    colours = [np.sin(places * (1 + c / 3) + c) + np.cos(places.T * (1.2 - c / 5) - c) for c in range(3)]
    smooth = np.stack(colours, axis=-1) * 55 + 128
    return np.clip(smooth + rng.integers(-8, 9, smooth.shape), 0, 255).astype(np.uint8)


def _about(rng: np.random.Generator, size: int) -> int:
    """Return a random even number that differs from ``size`` by at most an eighth of it."""
    return int(rng.integers(size - size // 8, size + size // 8 + 1)) // 2 * 2


def _picture(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    canvas = _canvas()
    top, left = rng.integers(0, len(canvas) - height + 1), rng.integers(0, len(canvas) - width + 1)
    return np.ascontiguousarray(canvas[top : top + height, left : left + width])


def pictures(height: int, width: int, channels: int = 3) -> Source:
    """Return a source of pictures of about this size."""

    def make(rng: np.random.Generator, number: int) -> np.ndarray:
        picture = _picture(rng, _about(rng, height), _about(rng, width))
        return picture if channels == 3 else np.ascontiguousarray(picture[..., :channels])

    return Source(make, "HWC")


def _floats(rng: np.random.Generator, number: int) -> np.ndarray:
    return PHOTO.make(rng, number).astype(np.float32)


def _file(encode: Callable[[np.ndarray], bytes], source: Source) -> Source:
    return Source(lambda rng, number: np.frombuffer(encode(source.make(rng, number)), np.uint8))


def _jpeg(image: np.ndarray) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=90)
    return file.getvalue()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _wav(sound: np.ndarray) -> bytes:
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes((sound * 8000).astype(np.int16).tobytes())
    return file.getvalue()


def _random(*shape: int, layout: str = "", scale: float = 1) -> Source:
    """Return a source of random floats; the last dimension is about as long as in ``shape``."""

    def make(rng: np.random.Generator, number: int) -> np.ndarray:
        return rng.random((*shape[:-1], _about(rng, shape[-1])), np.float32) * np.float32(scale)

    return Source(make, layout)


def _boxes(rng: np.random.Generator, number: int) -> np.ndarray:
    corners = rng.random((_about(rng, 50), 4), np.float32) / 2
    corners[:, 2:] += corners[:, :2]
    return corners


def _pixel_boxes(count: int) -> Source:
    def make(rng: np.random.Generator, number: int) -> np.ndarray:
        corners = rng.random((count, 4), np.float32) * 200
        corners[:, 2:] += corners[:, :2] + 4
        return corners

    return Source(make)


def _mosaic(rng: np.random.Generator, number: int) -> np.ndarray:
    return np.ascontiguousarray(PHOTO.make(rng, number)[..., 1])


PHOTO, LARGE, SMALL = pictures(480, 640), pictures(1080, 1920), pictures(256, 256)
GREY, MOSAIC, MASK = pictures(480, 640, 1), Source(_mosaic, "HW"), pictures(512, 512, 1)
FLOATS = Source(_floats, "HWC")
FRAMES = Source(lambda rng, number: np.stack([_picture(rng, 128, 160) for _ in range(8)]), "FHWC")
BOXES = Source(_boxes)
SOUND = Source(lambda rng, number: np.clip(rng.standard_normal(_about(rng, 5 * RATE), np.float32) / 4, -1, 1))
POWER, BANDS = _random(257, 500, layout="ft"), _random(80, 500, layout="ft")
JPEG, WAV, NPY = _file(_jpeg, PHOTO), _file(_wav, SOUND), _file(_npy, PHOTO)
LABELS = Source(lambda rng, number: rng.integers(0, 10, 200).astype(np.int32))
_CHARACTERS = [chr(number) for number in range(32, 129)]


def _lines(rng: np.random.Generator, number: int) -> np.ndarray:
    """Return a mask of lines of text, a little tilted."""
    rows, columns = np.mgrid[: _about(rng, 480), : _about(rng, 640)]
    line, height = (rows + columns * rng.uniform(-0.03, 0.03)) // 32, (rows + columns * 0.01) % 32
    widths = rng.integers(200, 600, 64)[line.astype(int)]
    return ((height > 8) & (columns > 40) & (columns < widths)).astype(np.uint8)


def _quadrilaterals(rng: np.random.Generator, number: int) -> np.ndarray:
    upper = rng.random((20, 1, 2), np.float32) * np.float32(300)
    corners = np.array([[0, 0], [200, 8], [198, 40], [-2, 32]], np.float32)
    return upper + corners + rng.random((20, 4, 2), np.float32)


LINES, QUADRILATERALS = Source(_lines, "HW"), Source(_quadrilaterals)
TEXTS = Source(lambda rng, number: rng.integers(65, 91, (10, 12)).astype(np.uint8))
CLASSES = Source(lambda rng, number: rng.random((21, _about(rng, 128), 128), np.float32), "CHW")


# Cases


def _declared() -> dict[str, list[Case]]:
    """Return the cases that are declared here, by operator."""
    declared: dict[str, list[Case]] = {}
    for part in (
        _sizes,
        _windows,
        _placements,
        _warps,
        _colours,
        _filters,
        _noise,
        _files,
        _types,
        _values,
        _sound,
        _answers,
    ):
        for case in part():
            declared.setdefault(case.operator, []).append(case)
    declared["pipeline"] = list(_pipelines())
    return declared


def _sizes() -> Iterator[Case]:
    for name, source in (("256x256", SMALL), ("480x640", PHOTO), ("1080x1920", LARGE)):
        yield Case(
            "resize",
            f"{name} to 224x224, antialiased",
            (source,),
            lambda m, x: m.fn.resize(x, size=(224, 224)),
            {
                "torchvision": lambda lib: lambda x: lib.F.resize(x, [224, 224]),
                "PIL": lambda lib: lambda x: x.resize((224, 224), lib.Image.Resampling.BILINEAR),
            },
            reason="weights are float32, as DALI's; summing columns of eight lines at once took 0.88 to 1.13 of the time, at a load of 34",
        )
    for reference in ("pil", "torchvision"):
        yield Case(
            "resize",
            f'480x640 to 224x224, antialiased, reference="{reference}"',
            (PHOTO,),
            lambda m, x, reference=reference: m.fn.resize(x, size=(224, 224), antialias=True, reference=reference),
            {
                "torchvision": lambda lib: lambda x: lib.F.resize(x, [224, 224]),
                "PIL": lambda lib: lambda x: x.resize((224, 224), lib.Image.Resampling.BILINEAR),
            },
            dali=False,
            reason="Pillow's weights have 22 bits and are multiplied in two parts, or as integers of 32 bits; the peer's have 16 bits"
            if reference == "pil"
            else "the peer's arithmetic; images are planned and called one by one",
        )

    def area(lib: Libraries) -> Callable[..., Any]:
        return lambda x: lib.cv2.resize(x, (224, 224))

    yield Case(
        "resize",
        "480x640 to 224x224, not antialiased",
        (PHOTO,),
        lambda m, x: m.fn.resize(x, size=(224, 224), antialias=False),
        {"OpenCV": area},
        reason="OpenCV weighs with 11 bits and rounds between the passes",
    )
    yield Case(
        "resize",
        '480x640 to 224x224, reference="opencv"',
        (PHOTO,),
        lambda m, x: m.fn.resize(x, size=(224, 224), antialias=False, reference="opencv"),
        {"OpenCV": area},
        dali=False,
        reason="OpenCV itself computes it",
    )

    def double(lib: Libraries) -> Callable[..., Any]:
        return lambda x: lib.cv2.resize(x, (1280, 960))

    yield Case(
        "resize",
        "480x640 to 960x1280",
        (PHOTO,),
        lambda m, x: m.fn.resize(x, size=(960, 1280)),
        {
            "OpenCV": double,
            "torchvision": lambda lib: lambda x: lib.F.resize(x, [960, 1280]),
            "PIL": lambda lib: lambda x: x.resize((1280, 960), lib.Image.Resampling.BILINEAR),
        },
        reason="OpenCV weighs with 11 bits and rounds between the passes",
    )
    yield Case(
        "resize",
        '480x640 to 960x1280, reference="opencv"',
        (PHOTO,),
        lambda m, x: m.fn.resize(x, size=(960, 1280), reference="opencv"),
        {"OpenCV": double},
        dali=False,
        reason="OpenCV itself computes it",
    )
    for kind, torch_name, pil_name in (
        ("CUBIC", "BICUBIC", "BICUBIC"),
        ("LANCZOS3", "LANCZOS", "LANCZOS"),
        ("NN", "NEAREST_EXACT", "NEAREST"),
    ):
        peers: dict[str, Peer] = {
            "PIL": lambda lib, name=pil_name: lambda x: x.resize((224, 224), lib.Image.Resampling[name])
        }
        if kind != "LANCZOS3":
            peers["torchvision"] = lambda lib, name=torch_name: (
                lambda x, mode=lib.T.InterpolationMode[name]: lib.F.resize(x, [224, 224], mode)
            )
        if kind == "NN":
            peers["OpenCV"] = lambda lib: lambda x: lib.cv2.resize(x, (224, 224), interpolation=lib.cv2.INTER_NEAREST)
        yield Case(
            "resize",
            f"480x640 to 224x224, INTERP_{kind}",
            (PHOTO,),
            lambda m, x, kind=kind: m.fn.resize(x, size=(224, 224), interp_type=getattr(m.types, f"INTERP_{kind}")),
            peers,
            reason="in no cache, at a load of 4: the kernel 159 us, OpenCV 227; the rest is one batch's Python"
            if kind == "NN"
            else "",
        )
    yield Case(
        "tensor_resize",
        "480x640 to a half",
        (PHOTO,),
        lambda m, x: m.fn.tensor_resize(x, scales=[0.5, 0.5], axes=[0, 1]),
    )
    yield Case(
        "random_resized_crop",
        "480x640 to 224x224",
        (PHOTO,),
        lambda m, x: m.fn.random_resized_crop(x, size=(224, 224), seed=1),
        {
            "torchvision": lambda lib: lib.T.RandomResizedCrop(224),
            "albumentations": lambda lib: _augmented(lib.A.RandomResizedCrop((224, 224))),
        },
    )
    yield Case(
        "resize_crop_mirror",
        "480x640, shorter 256, crop 224x224",
        (PHOTO,),
        lambda m, x: m.fn.resize_crop_mirror(x, resize_shorter=256.0, crop=(224, 224), mirror=1),
        {
            "torchvision": lambda lib: lambda x: lib.F.hflip(lib.F.center_crop(lib.F.resize(x, [256]), [224, 224])),
        },
    )


def _augmented(transform: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that applies a transform of albumentations to an image."""
    return lambda x: transform(image=x)["image"]


def _windows() -> Iterator[Case]:
    for name, source in (("256x256", SMALL), ("480x640", PHOTO), ("1080x1920", LARGE)):
        yield Case(
            "crop_mirror_normalize",
            f"224x224 of {name}",
            (source,),
            lambda m, x: m.fn.crop_mirror_normalize(x, crop=(224, 224), mean=MEAN, std=STD, mirror=1),
            {
                "torchvision": lambda lib: (
                    lambda x: lib.F.normalize(
                        lib.F.to_dtype(lib.F.hflip(lib.F.center_crop(x, [224, 224])), lib.torch.float32), MEAN, STD
                    )
                ),
            },
        )
    yield Case(
        "rescale_normalize",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.rescale_normalize(x, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        {
            "torchvision": lambda lib: (
                lambda x: lib.F.normalize(
                    lib.F.to_dtype(x, lib.torch.float32, scale=True), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
                )
            ),
            "albumentations": lambda lib: _augmented(lib.A.Normalize()),
        },
        dali=False,
    )
    yield Case(
        "crop",
        "224x224 of 480x640",
        (PHOTO,),
        lambda m, x: m.fn.crop(x, crop=(224, 224)),
        {
            "numpy": lambda lib: lambda x: x[128:352, 208:432].copy(),
            "torchvision": lambda lib: lambda x: lib.F.center_crop(x, [224, 224]).contiguous(),
        },
    )
    yield Case(
        "slice",
        "rows 50 to 350 of 480x640",
        (PHOTO,),
        lambda m, x: m.fn.slice(x, 50, 300, axes=[0]),
        {"numpy": lambda lib: lambda x: x[50:350].copy()},
    )
    yield Case(
        "pad",
        "480x640 to 576x768",
        (PHOTO,),
        lambda m, x: m.fn.pad(x, axes=[0, 1], shape=[576, 768]),
        {
            "OpenCV": lambda lib: (
                lambda x: lib.cv2.copyMakeBorder(x, 0, 576 - x.shape[0], 0, 768 - x.shape[1], lib.cv2.BORDER_CONSTANT)
            ),
            "numpy": lambda lib: lambda x: np.pad(x, [(0, 576 - x.shape[0]), (0, 768 - x.shape[1]), (0, 0)]),
        },
    )
    yield Case(
        "paste",
        "256x256, ratio 1.5",
        (SMALL,),
        lambda m, x: m.fn.paste(x, fill_value=(1, 2, 3), ratio=1.5),
        {
            "OpenCV": lambda lib: (
                lambda x: lib.cv2.copyMakeBorder(x, 64, 64, 64, 64, lib.cv2.BORDER_CONSTANT, value=(1, 2, 3))
            )
        },
    )


def _placements() -> Iterator[Case]:
    for title, code, arguments in (
        ("horizontal", 1, {}),
        ("vertical", 0, {"horizontal": 0, "vertical": 1}),
        ("both ways", -1, {"vertical": 1}),
    ):
        peers: dict[str, Peer] = {
            "OpenCV": lambda lib, code=code: lambda x: lib.cv2.flip(x, code),
        }
        if code >= 0:
            name = "horizontal_flip" if code else "vertical_flip"
            peers["torchvision"] = lambda lib, name=name: getattr(lib.F, name)
        yield Case("flip", f"{title}, 480x640", (PHOTO,), lambda m, x, given=arguments: m.fn.flip(x, **given), peers)
    yield Case(
        "transpose",
        "480x640 to CHW",
        (PHOTO,),
        lambda m, x: m.fn.transpose(x, perm=[2, 0, 1]),
        {
            "numpy": lambda lib: lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)),
            "torch": lambda lib: lambda x: x.contiguous(),
            "OpenCV": lambda lib: lambda x: np.stack(lib.cv2.split(x)),
        },
    )

    def erased(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[50:150, 50:150] = 0
        return x

    yield Case(
        "erase",
        "100x100 of 480x640",
        (PHOTO,),
        lambda m, x: m.fn.erase(x, anchor=(50, 50), shape=(100, 100), axis_names="HW"),
        {
            "numpy": lambda lib: erased,
            "torchvision": lambda lib: partial(lib.F.erase, i=50, j=50, h=100, w=100, v=lib.torch.zeros(3, 1, 1)),
        },
    )
    yield Case("grid_mask", "480x640", (PHOTO,), lambda m, x: m.fn.grid_mask(x, tile=50))
    yield Case(
        "sequence_rearrange",
        "8 frames of 128x160",
        (FRAMES,),
        lambda m, x: m.fn.sequence_rearrange(x, new_order=[7, 6, 5, 4, 3, 2, 1, 0]),
        {"numpy": lambda lib: lambda x: x[::-1].copy()},
    )
    yield Case(
        "cat",
        "two of 480x640",
        (PHOTO,),
        lambda m, x: m.fn.cat(x, x, axis=0),
        {"numpy": lambda lib: lambda x: np.concatenate([x, x])},
    )
    yield Case(
        "stack",
        "two of 480x640",
        (PHOTO,),
        lambda m, x: m.fn.stack(x, x),
        {"numpy": lambda lib: lambda x: np.stack([x, x])},
    )
    yield Case(
        "image_patches",
        "480x640, patches of 16",
        (Source(lambda rng, number: _picture(rng, _about(rng, 480) // 16 * 16, _about(rng, 640) // 16 * 16), "HWC"),),
        lambda m, x: tuple(m.fn.image_patches(x, patch=16)),
        dali=False,
    )


def _warped(lib: Libraries, warp: Callable[..., np.ndarray], matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    return warp(x, matrix, (x.shape[1], x.shape[0]), flags=lib.cv2.INTER_LINEAR | lib.cv2.WARP_INVERSE_MAP)


def _warps() -> Iterator[Case]:
    coarse = "cv2's bilinear weights have 5 bits of position; ours are exact, as DALI's"

    def rotation(lib: Libraries, x: np.ndarray) -> np.ndarray:
        height, width = x.shape[:2]
        matrix = lib.cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), 10.0, 1)
        rotated: np.ndarray = lib.cv2.warpAffine(x, matrix, (width, height))
        return rotated

    peers: dict[str, Peer] = {
        "OpenCV": lambda lib: lambda x: rotation(lib, x),
        "torchvision": lambda lib: lambda x, mode=lib.T.InterpolationMode.BILINEAR: lib.F.rotate(x, 10.0, mode),
        "PIL": lambda lib: lambda x: x.rotate(10.0, lib.Image.Resampling.BILINEAR),
    }
    yield Case(
        "rotate",
        "10 degrees, 480x640",
        (PHOTO,),
        lambda m, x: m.fn.rotate(x, angle=10.0, keep_size=True, fill_value=0),
        peers,
        reason=coarse,
    )
    yield Case(
        "rotate",
        '10 degrees, 480x640, reference="opencv"',
        (PHOTO,),
        lambda m, x: m.fn.rotate(x, angle=10.0, keep_size=True, fill_value=0, reference="opencv"),
        {"OpenCV": peers["OpenCV"]},
        dali=False,
        reason="OpenCV itself computes it",
    )

    def affine(lib: Libraries) -> Callable[..., Any]:
        return partial(_warped, lib, lib.cv2.warpAffine, np.array(TURN).reshape(2, 3))

    yield Case(
        "warp_affine",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.warp_affine(x, matrix=TURN, fill_value=0),
        {"OpenCV": affine},
        reason=coarse,
    )
    yield Case(
        "warp_affine",
        '480x640, reference="opencv"',
        (PHOTO,),
        lambda m, x: m.fn.warp_affine(x, matrix=TURN, fill_value=0, reference="opencv"),
        {"OpenCV": affine},
        dali=False,
        reason="OpenCV itself computes it",
    )
    perspective = [1.2, 0.2, -30.0, 0.1, 1.2, -20.0, 0.0005, 0.0015, 1.0]
    yield Case(
        "experimental.warp_perspective",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.experimental.warp_perspective(x, matrix=perspective),
        {"OpenCV": lambda lib: partial(_warped, lib, lib.cv2.warpPerspective, np.array(perspective).reshape(3, 3))},
        reason="OpenCV itself computes it, in DALI too",
    )
    maps = Source(lambda rng, number: np.indices((480, 640), np.float32)[1] + rng.random((480, 640), np.float32), "HW")
    maps_y = Source(
        lambda rng, number: np.indices((480, 640), np.float32)[0] + rng.random((480, 640), np.float32), "HW"
    )
    yield Case(
        "experimental.remap",
        "480x640",
        (PHOTO, maps, maps_y),
        lambda m, x, u, v: m.fn.experimental.remap(x, u, v),
        {"OpenCV": lambda lib: lambda x, u, v: lib.cv2.remap(x, u, v, lib.cv2.INTER_LINEAR)},
        dali=False,
    )
    yield Case("sphere", "480x640", (PHOTO,), lambda m, x: m.fn.sphere(x))
    yield Case("water", "480x640", (PHOTO,), lambda m, x: m.fn.water(x))
    identity = np.eye(4, dtype=np.float32)
    yield Case(
        "coord_transform",
        "50 boxes",
        (BOXES,),
        lambda m, x: m.fn.coord_transform(x, M=identity.ravel().tolist()),
        {"numpy": lambda lib: lambda x: x @ identity},
    )

    def mirrored(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[:, [0, 2]] = 1 - x[:, [2, 0]]
        return x

    yield Case(
        "bb_flip", "50 boxes", (BOXES,), lambda m, x: m.fn.bb_flip(x, ltrb=True), {"numpy": lambda lib: mirrored}
    )


def _colours() -> Iterator[Case]:
    yield Case(
        "brightness",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.brightness(x, brightness=1.2),
        {
            "OpenCV": lambda lib: lambda x: lib.cv2.convertScaleAbs(x, alpha=1.2),
            "torchvision": lambda lib: lambda x: lib.F.adjust_brightness(x, 1.2),
            "PIL": lambda lib: lambda x: lib.ImageEnhance.Brightness(x).enhance(1.2),
        },
    )

    def linear(lib: Libraries) -> Callable[..., Any]:
        return lambda x: lib.cv2.convertScaleAbs(x, alpha=1.2, beta=-25)

    yield Case(
        "contrast",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.contrast(x, contrast=1.2),
        {"OpenCV": linear, "torchvision": lambda lib: lambda x: lib.F.adjust_contrast(x, 1.2)},
    )
    yield Case(
        "brightness_contrast",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.brightness_contrast(x, brightness=1.2, contrast=0.9),
        {
            "OpenCV": linear,
            "albumentations": lambda lib: _augmented(lib.A.RandomBrightnessContrast((0.2, 0.2), (-0.1, -0.1), p=1)),
        },
    )
    yield Case(
        "hue",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.hue(x, hue=20.0),
        {
            "albumentations": lambda lib: _augmented(lib.A.HueSaturationValue((10, 10), (0, 0), (0, 0), p=1)),
            "torchvision": lambda lib: lambda x: lib.F.adjust_hue(x, 20 / 360),
        },
    )
    yield Case(
        "saturation",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.saturation(x, saturation=1.2),
        {
            "torchvision": lambda lib: lambda x: lib.F.adjust_saturation(x, 1.2),
            "PIL": lambda lib: lambda x: lib.ImageEnhance.Color(x).enhance(1.2),
        },
    )
    yield Case(
        "hsv",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.hsv(x, hue=20.0, saturation=1.1, value=0.9),
        {"albumentations": lambda lib: _augmented(lib.A.HueSaturationValue((10, 10), (20, 20), (-20, -20), p=1))},
    )
    yield Case(
        "color_twist",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.color_twist(x, brightness=1.1, contrast=1.1, saturation=1.2, hue=20.0),
        {
            "torchvision": lambda lib: lib.T.ColorJitter((1.1, 1.1), (1.1, 1.1), (1.2, 1.2), (0.05, 0.05)),
            "albumentations": lambda lib: _augmented(
                lib.A.ColorJitter((1.1, 1.1), (1.1, 1.1), (1.2, 1.2), (0.05, 0.05), p=1)
            ),
        },
    )
    yield Case(
        "color_space_conversion",
        "480x640, RGB to grey",
        (PHOTO,),
        lambda m, x: m.fn.color_space_conversion(x, image_type=m.types.RGB, output_type=m.types.GRAY),
        {
            "OpenCV": lambda lib: lambda x: lib.cv2.cvtColor(x, lib.cv2.COLOR_RGB2GRAY),
            "torchvision": lambda lib: lambda x: lib.F.rgb_to_grayscale(x),
            "PIL": lambda lib: lambda x: x.convert("L"),
        },
    )
    yield Case(
        "color_space_conversion",
        "480x640, RGB to YCbCr",
        (PHOTO,),
        lambda m, x: m.fn.color_space_conversion(x, image_type=m.types.RGB, output_type=m.types.YCbCr),
        {
            "OpenCV": lambda lib: lambda x: lib.cv2.cvtColor(x, lib.cv2.COLOR_RGB2YCrCb),
            "PIL": lambda lib: lambda x: x.convert("YCbCr"),
        },
    )
    yield Case(
        "equalize",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.equalize(x),
        {
            "OpenCV": lambda lib: lambda x: lib.cv2.merge([lib.cv2.equalizeHist(plane) for plane in lib.cv2.split(x)]),
            "torchvision": lambda lib: lambda x: lib.F.equalize(x),
            "PIL": lambda lib: lambda x: lib.ImageOps.equalize(x),
        },
    )
    yield Case(
        "clahe",
        "480x640, grey",
        (GREY,),
        lambda m, x: m.fn.clahe(x, tiles_x=8, tiles_y=8, clip_limit=2.0),
        {"OpenCV": lambda lib: lib.cv2.createCLAHE(2.0, (8, 8)).apply},
        reason="OpenCV computes the tables and the values in DALI, too",
    )
    table = np.arange(256, dtype=np.float32) / 255
    yield Case(
        "lookup_table",
        "480x640, to floats",
        (PHOTO,),
        lambda m, x: m.fn.lookup_table(x, keys=list(range(256)), values=table.tolist(), dtype=m.types.FLOAT),
        {"OpenCV": lambda lib: lambda x: lib.cv2.LUT(x, table), "numpy": lambda lib: lambda x: table[x]},
    )
    yield Case(
        "debayer",
        "480x640",
        (MOSAIC,),
        lambda m, x: m.fn.debayer(x, blue_position=[0, 0]),
        {"OpenCV": lambda lib: lambda x: lib.cv2.cvtColor(x, lib.cv2.COLOR_BayerBGGR2RGB)},
        reason="OpenCV itself computes it, in DALI too",
    )


def _filters() -> Iterator[Case]:
    for size in (5, 15):
        for reference in ("", "opencv"):
            given = {"reference": reference} if reference else {}
            yield Case(
                "gaussian_blur",
                f"{size}x{size}, 480x640" + (f', reference="{reference}"' if reference else ""),
                (PHOTO,),
                lambda m, x, size=size, given=given: m.fn.gaussian_blur(x, window_size=size, **given),
                {
                    "OpenCV": lambda lib, size=size: lambda x: lib.cv2.GaussianBlur(x, (size, size), 0),
                    "torchvision": lambda lib, size=size: lambda x: lib.F.gaussian_blur(x, [size, size]),
                },
                dali=not reference,
                reason="OpenCV itself computes it"
                if reference
                else "OpenCV sums in 16 bits, and rounds between the passes",
            )
    yield Case(
        "laplacian",
        "3x3, 480x640",
        (PHOTO,),
        lambda m, x: m.fn.laplacian(x, window_size=3, dtype=m.types.FLOAT),
        {"OpenCV": lambda lib: lambda x: lib.cv2.Laplacian(x, lib.cv2.CV_32F, ksize=3)},
    )
    for name, window in (("box", BOX), ("all weights differ", UNEVEN)):
        for reference in ("", "opencv"):
            given = {"reference": reference} if reference else {}
            yield Case(
                "filter",
                f"5x5, {name}, 480x640" + (f', reference="{reference}"' if reference else ""),
                (PHOTO,),
                lambda m, x, window=window, given=given: m.fn.filter(x, window, **given),
                {
                    "OpenCV": lambda lib, window=window: lambda x: lib.cv2.filter2D(x, -1, window),
                    "scipy": lambda lib, window=window: (
                        lambda x: lib.ndimage.correlate(x, window[..., None], mode="mirror")
                    ),
                },
                dali=not reference,
                reason="OpenCV itself computes it, in DALI too",
            )
    square = np.ones((7, 7), np.uint8)
    for name in ("dilate", "erode"):
        yield Case(
            f"experimental.{name}",
            "7x7, 480x640",
            (PHOTO,),
            lambda m, x, name=name: getattr(m.fn.experimental, name)(x, mask_size=[7, 7]),
            {"OpenCV": lambda lib, name=name: lambda x: getattr(lib.cv2, name)(x, square)},
            dali=False,
            reason="OpenCV itself computes it",
        )
    for size in (3, 7, 31):
        yield Case(
            "experimental.median_blur",
            f"{size}x{size}, 480x640",
            (PHOTO,),
            lambda m, x, size=size: m.fn.experimental.median_blur(x, window_size=[size, size]),
            {"OpenCV": lambda lib, size=size: lambda x: lib.cv2.medianBlur(x, size)},
            dali=False,
            reason="OpenCV itself computes it",
        )
    yield Case(
        "experimental.median_blur",
        "15x9, 256x256",
        (SMALL,),
        lambda m, x: m.fn.experimental.median_blur(x, window_size=[15, 9]),
        dali=False,
    )
    yield Case(
        "pillow_function",
        "adjust_sharpness, 480x640",
        (PHOTO,),
        lambda m, x: m.fn.pillow_function(x, function="adjust_sharpness", arguments=[3.0]),
        {"PIL": lambda lib: lambda x: lib.ImageEnhance.Sharpness(x).enhance(3.0)},
        dali=False,
    )
    yield Case(
        "jpeg_compression_distortion",
        "480x640, quality 50",
        (PHOTO,),
        lambda m, x: m.fn.jpeg_compression_distortion(x, quality=50),
        {
            "OpenCV": lambda lib: (
                lambda x, quality=[lib.cv2.IMWRITE_JPEG_QUALITY, 50]: lib.cv2.imdecode(
                    lib.cv2.imencode(".jpg", x, quality)[1], lib.cv2.IMREAD_COLOR
                )
            ),
            "torchvision": lambda lib: lambda x: lib.F.jpeg(x.contiguous(), 50),
            "albumentations": lambda lib: _augmented(lib.A.ImageCompression("jpeg", (50, 50), p=1)),
        },
    )


def _noise() -> Iterator[Case]:
    rng = np.random.default_rng(0)

    def noisy(x: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(x + rng.standard_normal(x.shape, np.float32) * np.float32(10)), 0, 255).astype(np.uint8)

    def shot(x: np.ndarray) -> np.ndarray:
        return np.clip(rng.poisson(x / 10.0) * 10.0, 0, 255).astype(np.uint8)

    yield Case(
        "noise.gaussian",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.noise.gaussian(x, stddev=10.0, seed=1),
        {
            "numpy": lambda lib: noisy,
            "OpenCV": lambda lib: (
                lambda x: lib.cv2.add(x, lib.cv2.randn(np.empty(x.shape, np.int16), 0, 10), dtype=lib.cv2.CV_8U)
            ),
            "albumentations": lambda lib: _augmented(lib.A.GaussNoise((0.04, 0.04), p=1)),
        },
    )
    yield Case(
        "noise.salt_and_pepper",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.noise.salt_and_pepper(x, seed=1),
        {"albumentations": lambda lib: _augmented(lib.A.SaltAndPepper((0.05, 0.05), p=1))},
    )
    yield Case(
        "noise.shot",
        "256x256",
        (SMALL,),
        lambda m, x: m.fn.noise.shot(x, factor=10.0, seed=1),
        {
            "numpy": lambda lib: shot,
            "albumentations": lambda lib: _augmented(lib.A.ShotNoise((0.1, 0.1), p=1)),
        },
    )
    draws: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
        "uniform": ({}, lambda *_: rng.uniform(-1, 1, (100, 100)).astype(np.float32)),
        "normal": ({}, lambda *_: rng.standard_normal((100, 100), np.float32)),
        "coin_flip": ({}, lambda *_: (rng.random((100, 100), np.float32) < 0.5).astype(np.int32)),
        "beta": ({}, lambda *_: rng.beta(1, 1, (100, 100)).astype(np.float32)),
    }
    for name, (given, peer) in draws.items():
        yield Case(
            f"random.{name}",
            "100x100",
            (),
            lambda m, name=name, given=given: getattr(m.fn.random, name)(shape=[100, 100], seed=1, **given),
            {"numpy": lambda lib, peer=peer: peer},
        )


def _files() -> Iterator[Case]:
    decoded: dict[str, Peer] = {
        "OpenCV": lambda lib: lambda x: lib.cv2.imdecode(x, lib.cv2.IMREAD_COLOR_RGB),
        "torchvision": lambda lib: lambda x: lib.torchvision.io.decode_jpeg(x),
        "simplejpeg": lambda lib: lambda x: lib.simplejpeg.decode_jpeg(x.data),
        "PIL": lambda lib: lambda x: np.asarray(lib.Image.open(io.BytesIO(x.data)).convert("RGB")),
    }
    yield Case("decoders.image", "JPEG, 480x640", (JPEG,), lambda m, x: m.fn.decoders.image(x), decoded)
    for name, given in (
        ("crop", {"crop": (224, 224)}),
        ("random_crop", {"seed": 1}),
        ("slice", {"rel_start": [0.1, 0.4], "rel_end": [0.7, 0.9]}),
    ):
        yield Case(
            f"decoders.image_{name}",
            "JPEG, 480x640",
            (JPEG,),
            lambda m, x, name=name, given=given: getattr(m.fn.decoders, f"image_{name}")(x, **given),
        )
    yield Case(
        "decoders.audio",
        "WAV, 5 s of 16 kHz",
        (WAV,),
        lambda m, x: m.fn.decoders.audio(x, dtype=m.types.FLOAT)[0],
        {"soundfile": lambda lib: lambda x: lib.soundfile.read(io.BytesIO(x.data), dtype="float32")[0]},
    )
    yield Case(
        "decoders.numpy",
        "480x640",
        (NPY,),
        lambda m, x: m.fn.decoders.numpy(x),
        {"numpy": lambda lib: lambda x: np.load(io.BytesIO(x.data))},
        dali=False,
    )
    yield Case(
        "encoders.jpeg",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.encoders.jpeg(x),
        {
            "OpenCV": lambda lib: lambda x: lib.cv2.imencode(".jpg", x),
            "simplejpeg": lambda lib: lambda x: lib.simplejpeg.encode_jpeg(x, 95, "RGB", "420"),
        },
        dali=False,
        reason="OpenCV itself computes it, which takes BGR: at a load of 11, imencode takes 1830 us, and swapping red and blue 180",
    )
    yield Case(
        "encoders.png",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.encoders.png(x),
        {"OpenCV": lambda lib: lambda x: lib.cv2.imencode(".png", x, [lib.cv2.IMWRITE_PNG_COMPRESSION, 1])},
        dali=False,
        reason="OpenCV itself computes it",
    )
    yield Case(
        "encoders.webp",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.encoders.webp(x),
        {"OpenCV": lambda lib: lambda x: lib.cv2.imencode(".webp", x, [lib.cv2.IMWRITE_WEBP_QUALITY, 90])},
        dali=False,
        reason="OpenCV itself computes it",
    )

    def written(lib: Libraries, kind: str) -> Callable[[np.ndarray], bytes]:
        def write(x: np.ndarray) -> bytes:
            file = io.BytesIO()
            lib.soundfile.write(file, x, RATE, format=kind, subtype="PCM_16")
            return file.getvalue()

        return write

    for name in ("flac", "wav"):
        yield Case(
            f"encoders.{name}",
            "5 s of 16 kHz",
            (SOUND,),
            lambda m, x, name=name: getattr(m.fn.encoders, name)(x, sample_rate=RATE),
            {"soundfile": lambda lib, name=name: written(lib, name.upper())},
            dali=False,
        )


def _types() -> Iterator[Case]:
    yield Case(
        "cast",
        "480x640, uint8 to float",
        (PHOTO,),
        lambda m, x: m.fn.cast(x, dtype=m.types.FLOAT),
        {"numpy": lambda lib: lambda x: x.astype(np.float32), "torch": lambda lib: lambda x: x.to(lib.torch.float32)},
    )
    yield Case(
        "cast",
        "480x640, float to uint8",
        (FLOATS,),
        lambda m, x: m.fn.cast(x, dtype=m.types.UINT8),
        {"OpenCV": lambda lib: lambda x: lib.cv2.convertScaleAbs(x)},
    )
    yield Case("permute_batch", "480x640", (PHOTO,), lambda m, x: m.fn.permute_batch(x, indices=[1, 0] * (BATCH // 2)))
    yield Case("copy", "480x640", (PHOTO,), lambda m, x: m.fn.copy(x), {"numpy": lambda lib: lambda x: x.copy()})
    yield Case(
        "ones_like",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.ones_like(x),
        {"numpy": lambda lib: lambda x: np.ones_like(x)},
    )
    yield Case(
        "zeros_like",
        "480x640",
        (PHOTO,),
        lambda m, x: m.fn.zeros_like(x),
        {"numpy": lambda lib: lambda x: np.zeros(x.shape, x.dtype) + 0},
    )
    eye = np.eye(10, dtype=np.float32)
    yield Case(
        "one_hot",
        "200 labels of 10 classes",
        (LABELS,),
        lambda m, x: m.fn.one_hot(x, num_classes=10, dtype=m.types.FLOAT),
        {
            "numpy": lambda lib: lambda x: eye[x],
            "torch": lambda lib: lambda x: lib.torch.nn.functional.one_hot(x.long(), 10).float(),
        },
    )


def _values() -> Iterator[Case]:
    yield Case(
        "normalize",
        "480x640, by channel",
        (PHOTO,),
        lambda m, x: m.fn.normalize(x, axes=[0, 1]),
        {
            "numpy": lambda lib: lambda x: ((x - x.mean((0, 1))) / x.std((0, 1))).astype(np.float32),
            "albumentations": lambda lib: _augmented(lib.A.Normalize(normalization="image_per_channel")),
        },
    )
    reduced: dict[str, tuple[Work, Callable[..., Any]]] = {
        "max": (lambda m, x: m.fn.reductions.max(x), lambda x: x.max()),
        "min": (lambda m, x: m.fn.reductions.min(x), lambda x: x.min()),
        "mean": (lambda m, x: m.fn.reductions.mean(x, axes=[0, 1]), lambda x: x.mean((0, 1), np.float32)),
        "sum": (lambda m, x: m.fn.reductions.sum(x), lambda x: x.sum()),
        "mean_square": (lambda m, x: m.fn.reductions.mean_square(x), lambda x: np.square(x, dtype=np.float32).mean()),
        "rms": (lambda m, x: m.fn.reductions.rms(x), lambda x: np.sqrt(np.square(x, dtype=np.float32).mean())),
        "std_dev": (
            lambda m, x: m.fn.reductions.std_dev(x, m.fn.reductions.mean(x)),
            lambda x: x.std(dtype=np.float32),
        ),
        "variance": (
            lambda m, x: m.fn.reductions.variance(x, m.fn.reductions.mean(x)),
            lambda x: x.var(dtype=np.float32),
        ),
    }
    statistics: dict[str, Peer] = {
        "mean": lambda lib: lambda x: lib.cv2.mean(x),
        "std_dev": lambda lib: lambda x: lib.cv2.meanStdDev(x.reshape(-1)),
        "variance": lambda lib: lambda x: lib.cv2.meanStdDev(x.reshape(-1)),
        "mean_square": lambda lib: lambda x: lib.cv2.norm(x, lib.cv2.NORM_L2SQR) / x.size,
        "rms": lambda lib: lambda x: lib.cv2.norm(x) / x.size**0.5,
        "max": lambda lib: lambda x: lib.cv2.norm(x, lib.cv2.NORM_INF),
    }
    for name, (work, peer) in reduced.items():
        peers: dict[str, Peer] = {"numpy": lambda lib, peer=peer: peer}
        if name in statistics:
            peers["OpenCV"] = statistics[name]
        yield Case(f"reductions.{name}", "480x640", (PHOTO,), work, peers)


def _sound() -> Iterator[Case]:
    yield Case(
        "spectrogram",
        "5 s of 16 kHz",
        (SOUND,),
        lambda m, x: m.fn.spectrogram(x, nfft=512, window_length=400, window_step=160),
        {
            "librosa": lambda lib: (
                lambda x: np.abs(lib.librosa.stft(x, n_fft=512, win_length=400, hop_length=160)) ** 2
            ),
            "torchaudio": lambda lib: lib.torchaudio.transforms.Spectrogram(512, 400, 160),
        },
    )
    bank = np.random.default_rng(0).random((80, 257), np.float32)
    yield Case(
        "mel_filter_bank",
        "80 of 257 bands, 5 s",
        (POWER,),
        lambda m, x: m.fn.mel_filter_bank(x, sample_rate=float(RATE), nfilter=80),
        {
            "numpy": lambda lib: lambda x: bank @ x,
            "torchaudio": lambda lib: lib.torchaudio.transforms.MelScale(80, RATE, n_stft=257),
        },
    )
    yield Case(
        "mel_features",
        "80 bands, 5 s of 16 kHz",
        (SOUND,),
        lambda m, x: m.fn.mel_features(x, window_length=400, window_step=160, nfft=512),
        {
            "librosa": lambda lib: (
                lambda x: lib.librosa.feature.melspectrogram(
                    y=x, sr=RATE, n_fft=512, win_length=400, hop_length=160, n_mels=80
                )
            )
        },
        dali=False,
    )
    yield Case(
        "kaldi_fbank",
        "40 bands, 5 s of 16 kHz",
        (SOUND,),
        lambda m, x: m.fn.kaldi_fbank(x, num_bins=40),
        {"torchaudio": lambda lib: lambda x: lib.kaldi.fbank(x[None], num_mel_bins=40)},
        dali=False,
    )
    yield Case(
        "mfcc",
        "20 of 80 bands, 5 s",
        (BANDS,),
        lambda m, x: m.fn.mfcc(x, n_mfcc=20),
        {"scipy": lambda lib: lambda x: lib.scipy_fft.dct(x, axis=0)[:20]},
    )
    yield Case(
        "to_decibels",
        "257 bands, 5 s",
        (POWER,),
        lambda m, x: m.fn.to_decibels(x, multiplier=10.0, cutoff_db=-80.0),
        {
            "librosa": lambda lib: lambda x: lib.librosa.power_to_db(x),
            "torchaudio": lambda lib: lambda x: lib.AF.amplitude_to_DB(x, 10.0, 1e-10, 0.0, 80.0),
        },
    )
    yield Case(
        "preemphasis_filter",
        "5 s of 16 kHz",
        (SOUND,),
        lambda m, x: m.fn.preemphasis_filter(x),
        {
            "librosa": lambda lib: lambda x: lib.librosa.effects.preemphasis(x),
            "torchaudio": lambda lib: lambda x: lib.AF.preemphasis(x),
            "numpy": lambda lib: lambda x: np.concatenate([x[:1], x[1:] - np.float32(0.97) * x[:-1]]),
        },
    )
    yield Case(
        "nonsilent_region",
        "5 s of 16 kHz",
        (SOUND,),
        lambda m, x: tuple(m.fn.nonsilent_region(x)),
        {"librosa": lambda lib: lambda x: lib.librosa.effects.trim(x)},
    )
    yield Case(
        "audio_resample",
        "5 s, 16 kHz to 8 kHz",
        (SOUND,),
        lambda m, x: m.fn.audio_resample(x, scale=0.5),
        {
            "scipy": lambda lib: lambda x: lib.signal.resample_poly(x, 1, 2),
            "torchaudio": lambda lib: lib.torchaudio.transforms.Resample(RATE, RATE // 2),
            "librosa": lambda lib: lambda x: lib.librosa.resample(x, orig_sr=RATE, target_sr=RATE // 2),
        },
    )
    yield Case(
        "power_spectrum",
        "5 s of 16 kHz",
        (Source(lambda rng, number: rng.standard_normal(65536).astype(np.float32)),),
        lambda m, x: m.fn.power_spectrum(x),
        {"scipy": lambda lib: lambda x: np.abs(lib.scipy_fft.rfft(x)) ** 2},
    )
    yield Case(
        "standardize",
        "5 s of 16 kHz",
        (SOUND,),
        lambda m, x: m.fn.standardize(x),
        {"numpy": lambda lib: lambda x: (x - x.mean()) / np.sqrt(x.var() + np.float32(1e-7))},
        dali=False,
    )


def _answers() -> Iterator[Case]:
    yield Case(
        "argmax",
        "21 classes of 128x128",
        (CLASSES,),
        lambda m, x: m.fn.argmax(x, axis=0),
        {"numpy": lambda lib: lambda x: x.argmax(0), "torch": lambda lib: lambda x: x.argmax(0)},
        dali=False,
    )
    yield Case(
        "softmax",
        "21 classes of 128x128",
        (CLASSES,),
        lambda m, x: m.fn.softmax(x, axis=0),
        {"scipy": lambda lib: lambda x: lib.special.softmax(x, 0), "torch": lambda lib: lambda x: x.softmax(0)},
        dali=False,
    )
    scores = Source(lambda rng, number: rng.random(1000, np.float32))
    yield Case(
        "top_k",
        "5 of 1000",
        (scores,),
        lambda m, x: tuple(m.fn.top_k(x, k=5)),
        {"torch": lambda lib: lambda x: x.topk(5), "numpy": lambda lib: lambda x: np.argpartition(x, -5)[-5:]},
        dali=False,
    )

    def suppressed(lib: Libraries, boxes: np.ndarray, scores: np.ndarray) -> Any:
        sized = boxes.copy()
        sized[:, 2:] -= sized[:, :2]
        return lib.cv2.dnn.NMSBoxes(sized, scores, 0.0, 0.5)

    for count in (200, 2000):
        yield Case(
            "nms",
            f"{count} boxes",
            (_pixel_boxes(count), Source(lambda rng, number, count=count: rng.random(count, np.float32))),
            lambda m, boxes, scores: tuple(m.fn.nms(boxes, scores)),
            {
                "torchvision": lambda lib: lambda boxes, scores: lib.torchvision.ops.nms(boxes, scores, 0.5),
                "OpenCV": lambda lib: lambda boxes, scores: suppressed(lib, boxes, scores),
            },
            dali=False,
        )
    yield Case(
        "decode_boxes",
        "8400 centres and extents",
        (Source(lambda rng, number: rng.random((8400, 4), np.float32) * 200),),
        lambda m, x: m.fn.decode_boxes(x),
        {
            "numpy": lambda lib: lambda x: np.hstack([x[:, :2] - x[:, 2:] / 2, x[:, :2] + x[:, 2:] / 2]),
            "torchvision": lambda lib: lambda x: lib.torchvision.ops.box_convert(x, "cxcywh", "xyxy"),
        },
        dali=False,
    )

    def read(x: np.ndarray) -> tuple[str, np.ndarray, float]:
        best = x.argmax(1)
        highest = x[np.arange(len(x)), best]
        likely = 1 / np.exp(x - highest[:, None]).sum(1)
        new = (np.diff(best, prepend=-1) != 0) & (best != 0)
        return "".join([_CHARACTERS[one] for one in best[new].tolist()]), likely[new], float(np.log(likely).sum())

    yield Case(
        "ctc_decode",
        "80 steps of 97 classes, greedy",
        (Source(lambda rng, number: rng.standard_normal((_about(rng, 80), 97), np.float32)),),
        lambda m, x: tuple(m.fn.ctc_decode(x, vocabulary=_CHARACTERS)),
        {"numpy": lambda lib: read},
        dali=False,
    )

    def pasted(lib: Libraries, masks: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        image = np.zeros((len(masks), 480, 640), np.uint8)
        for own, mask, (left, top, right, bottom) in zip(image, masks, boxes.astype(int).tolist()):
            grown = lib.cv2.resize(mask, (right - left + 1, bottom - top + 1))
            own[top : bottom + 1, left : right + 1] = grown[: 480 - top, : 640 - left] > 0.5
        return image

    def pasted_by_torchvision(lib: Libraries) -> Callable[..., Any]:
        lib.torchvision  # noqa: B018  (imports it, as far as it can be)
        heads = importlib.import_module("torchvision.models.detection.roi_heads")
        return lambda masks, boxes: heads.paste_masks_in_image(masks[:, None], boxes, (480, 640)) > 0.5

    yield Case(
        "paste_masks",
        "20 masks of 28x28 into 480x640",
        (Source(lambda rng, number: rng.random((20, 28, 28), np.float32)), _pixel_boxes(20)),
        lambda m, masks, boxes: m.fn.paste_masks(masks, boxes, size=[480, 640], threshold=0.5),
        {
            "torchvision": pasted_by_torchvision,
            "OpenCV": lambda lib: lambda masks, boxes: pasted(lib, masks, boxes),
        },
        dali=False,
    )
    yield Case(
        "find_contours",
        "30 lines of text on 480x640",
        (LINES,),
        lambda m, x: tuple(m.fn.find_contours(x)),
        {"OpenCV": lambda lib: lambda x: lib.cv2.findContours(x, lib.cv2.RETR_EXTERNAL, lib.cv2.CHAIN_APPROX_SIMPLE)},
        dali=False,
        reason="OpenCV itself computes it; the polygons of a batch are joined to two arrays",
    )

    def lines_found(lib: Libraries, x: np.ndarray) -> list[np.ndarray]:
        polygons, _ = lib.cv2.findContours(x, lib.cv2.RETR_EXTERNAL, lib.cv2.CHAIN_APPROX_SIMPLE)
        return [lib.cv2.boxPoints(lib.cv2.minAreaRect(polygon)) for polygon in polygons]

    yield Case(
        "min_area_boxes",
        "30 lines of text on 480x640, with find_contours",
        (LINES,),
        lambda m, x: tuple(m.fn.min_area_boxes(*m.fn.find_contours(x))),
        {"OpenCV": lambda lib: lambda x: lines_found(lib, x)},
        dali=False,
        reason="OpenCV itself computes it, a rectangle at a time; each polygon is cut out and checked in Python",
    )

    def cut(lib: Libraries, x: np.ndarray, corners: np.ndarray) -> list[np.ndarray]:
        target = np.array([[0, 0], [200, 0], [200, 32], [0, 32]], np.float32)
        return [
            lib.cv2.warpPerspective(
                x, lib.cv2.getPerspectiveTransform(own, target), (200, 32), borderMode=lib.cv2.BORDER_REPLICATE
            )
            for own in corners
        ]

    yield Case(
        "perspective_crops",
        "20 of 32x200 from 480x640",
        (PHOTO, QUADRILATERALS),
        lambda m, x, corners: m.fn.perspective_crops(x, corners, size=[32, 200])[0],
        {"OpenCV": lambda lib: lambda x, corners: cut(lib, x, corners)},
        dali=False,
        reason="OpenCV itself computes it, a crop at a time; a crop takes some microseconds of Python",
    )

    def written_by_pillow(lib: Libraries) -> Callable[..., Any]:
        font = lib.ImageFont.load_default_imagefont()

        def write(x: Any, points: np.ndarray, texts: np.ndarray) -> Any:
            x = x.copy()
            drawing = lib.ImageDraw.Draw(x)
            for (left, top), text in zip(points.tolist(), texts):
                drawing.text((left, top), text.tobytes().rstrip(b"\0").decode(), (255, 255, 255), font)
            return x

        return write

    def written_by_opencv(lib: Libraries) -> Callable[..., Any]:
        def write(x: np.ndarray, points: np.ndarray, texts: np.ndarray) -> np.ndarray:
            x = x.copy()
            for (left, top), text in zip(points.astype(int).tolist(), texts):
                named = text.tobytes().rstrip(b"\0").decode()
                lib.cv2.putText(x, named, (left, top + 12), lib.cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255, 255, 255))
            return x

        return write

    yield Case(
        "draw_text",
        "10 texts of 12 characters on 480x640",
        (PHOTO, Source(lambda rng, number: rng.random((10, 2), np.float32) * 400), TEXTS),
        lambda m, x, points, texts: m.fn.draw_text(x, points, texts),
        {"PIL": written_by_pillow, "OpenCV": written_by_opencv},
        dali=False,
    )

    def drawn(lib: Libraries, x: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        x = x.copy()
        for left, top, right, bottom in boxes.astype(int).tolist():
            lib.cv2.rectangle(x, (left, top), (right, bottom), (255, 0, 0), 2)
        return x

    yield Case(
        "draw_boxes",
        "10 on 480x640",
        (PHOTO, _pixel_boxes(10)),
        lambda m, x, boxes: m.fn.draw_boxes(x, boxes, thickness=2),
        {"OpenCV": lambda lib: lambda x, boxes: drawn(lib, x, boxes)},
        dali=False,
    )


def _pipelines() -> Iterator[Case]:
    """Yield cases in which several operators follow each other, as in augmentation pipelines."""

    def letterboxed(lib: Libraries, x: np.ndarray) -> np.ndarray:
        scale = min(640 / x.shape[0], 640 / x.shape[1])
        height, width = round(x.shape[0] * scale), round(x.shape[1] * scale)
        resized = lib.cv2.resize(x, (width, height))
        top, left = (640 - height) // 2, (640 - width) // 2
        boxed: np.ndarray = lib.cv2.copyMakeBorder(
            resized, top, 640 - height - top, left, 640 - width - left, lib.cv2.BORDER_CONSTANT, value=(114, 114, 114)
        )
        return boxed

    def letterbox(m: Any, x: Any, **given: Any) -> Any:
        resized = m.fn.resize(x, size=(640, 640), mode="not_larger", antialias=False, **given)
        return m.fn.crop(resized, crop=(640, 640), out_of_bounds_policy="pad", fill_values=114)

    for reference in ("", "opencv"):
        given = {"reference": reference} if reference else {}
        yield Case(
            "pipeline",
            "letterbox, 1080x1920 to 640x640" + (f', reference="{reference}"' if reference else ""),
            (LARGE,),
            lambda m, x, given=given: letterbox(m, x, **given),
            {"OpenCV": lambda lib: lambda x: letterboxed(lib, x)},
            dali=not reference,
            reason="OpenCV resizes with weights of 11 bits; its own result is copied once more into the box",
        )

    def with_mask(m: Any, x: Any, mask: Any) -> Any:
        angle = m.fn.random.uniform(range=[-30.0, 30.0], seed=1)
        image = m.fn.rotate(x, angle=angle, keep_size=True, fill_value=0)
        return image, m.fn.rotate(mask, angle=angle, keep_size=True, fill_value=0, interp_type=m.types.INTERP_NN)

    pair = Source(lambda rng, number: _picture(rng, 512, 512), "HWC")
    masks = Source(lambda rng, number: np.ascontiguousarray(_picture(rng, 512, 512)[..., :1]), "HWC")

    def rotated(lib: Libraries) -> Callable[..., Any]:
        transform = lib.A.Rotate((-30, 30), border_mode=lib.cv2.BORDER_CONSTANT, p=1)
        return lambda x, mask: transform(image=x, mask=mask)

    yield Case(
        "pipeline",
        "rotate an image and its mask, 512x512",
        (pair, masks),
        with_mask,
        {"albumentations": rotated},
        reason="OpenCV's weights have 5 bits of position; ours are exact, as DALI's",
    )

    def simclr(m: Any, x: Any) -> Any:
        uniform, flip = m.fn.random.uniform, m.fn.random.coin_flip
        x = m.fn.random_resized_crop(x, size=(224, 224), seed=1)
        x = m.fn.flip(x, horizontal=flip(seed=2))
        x = m.fn.color_twist(
            x,
            brightness=uniform(range=[0.2, 1.8], seed=3),
            contrast=uniform(range=[0.2, 1.8], seed=4),
            saturation=uniform(range=[0.2, 1.8], seed=5),
            hue=uniform(range=[-72.0, 72.0], seed=6),
        )
        x = m.fn.gaussian_blur(x, sigma=uniform(range=[0.1, 2.0], seed=7), window_size=23)
        return m.fn.crop_mirror_normalize(x, mean=MEAN, std=STD)

    yield Case(
        "pipeline",
        "SimCLR: random_resized_crop 224, flip, colours, blur, normalize; 480x640",
        (PHOTO,),
        simclr,
        {
            "torchvision": lambda lib: lib.T.Compose(
                [
                    lib.T.RandomResizedCrop(224),
                    lib.T.RandomHorizontalFlip(),
                    lib.T.ColorJitter(0.8, 0.8, 0.8, 0.2),
                    lib.T.GaussianBlur(23, (0.1, 2.0)),
                    lib.T.ToDtype(lib.torch.float32),
                    lib.T.Normalize(MEAN, STD),
                ]
            ),
            "albumentations": lambda lib: _augmented(
                lib.A.Compose(
                    [
                        lib.A.RandomResizedCrop((224, 224)),
                        lib.A.HorizontalFlip(),
                        lib.A.ColorJitter((0.2, 1.8), (0.2, 1.8), (0.2, 1.8), (-0.2, 0.2), p=1),
                        lib.A.GaussianBlur((23, 23), (0.1, 2.0), p=1),
                        lib.A.Normalize(),
                    ]
                )
            ),
        },
    )
    for name, transform, given in (
        ("rand_augment", "RandAugment", {"n": 2, "m": 9}),
        ("auto_augment", "AutoAugment", {}),
        ("trivial_augment_wide", "TrivialAugmentWide", {}),
    ):
        yield Case(
            "pipeline",
            f"{transform}; 224x224",
            (pictures(224, 224),),
            partial(_augmented_by, name, given),
            {"torchvision": lambda lib, transform=transform: getattr(lib.T, transform)()},
            conditionals=True,
            reason="a batch takes many steps (AutoAugment: 231, of which 101 split it, and 65 have no samples), each with its Python; in a "
            "profile, kernels take a tenth",
        )


def _augmented_by(policy: str, arguments: Mapping[str, Any], module: Any, images: Any) -> Any:
    """Return the images augmented by a policy of `auto_aug`."""
    package = importlib.import_module(f"{module.__name__}.auto_aug.{policy.removesuffix('_wide')}")
    return getattr(package, policy)(images, **arguments)


# Cases generated from schemas


def _generated(schema: Schema) -> Case:
    call = shown_calls(schema)[0]
    sources = tuple(
        Source(lambda rng, number, make=samples.make: np.ascontiguousarray(make(number)), samples.layout)
        for samples in call.inputs
    )
    return Case(schema.fn_path, call.name or "the reference's example", sources, _work_of(schema, call))


def _work_of(schema: Schema, call: Call) -> Work:
    """Return a function that makes a call with Penstock's module or DALI's."""

    def work(module: Any, *inputs: Any) -> Any:
        given = {name: _of_module(module, value) for name, value in call.arguments.items()}
        if schema.random:
            given.setdefault("seed", 7)
        outputs = operator.attrgetter(schema.fn_path)(module.fn)(*inputs, **given)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    return work


def _of_module(module: Any, value: object) -> Any:
    """Return an argument with members of Penstock's enumerations replaced by those of ``module``."""
    if isinstance(value, enum.IntEnum):
        return getattr(module.types, type(value).__name__)(int(value))
    if isinstance(value, list):
        return [_of_module(module, item) for item in value]
    return value
