"""Pipelines that give the same on CPU and GPU; no goldens are needed to compare one with the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from audio_on_both_devices import AUDIO

from penstock import fn, pipeline_def, types

Define = Callable[[str], Any]

_RNG = np.random.default_rng(0)
_IMAGES = [_RNG.integers(0, 256, shape, np.uint8) for shape in ((40, 60, 3), (33, 29, 3), (64, 64, 3))]
_SIX_CHANNELS = [_RNG.integers(0, 256, shape, np.uint8) for shape in ((20, 30, 6), (33, 29, 6), (16, 64, 6))]


def _given(samples: list[np.ndarray], device: str) -> Any:
    """The samples, and with every second batch others of the same shapes."""
    others = [np.ascontiguousarray(sample[::-1]) for sample in samples]
    node = fn.external_source([samples, others], cycle=True, layout="HWC")
    return node.gpu() if device == "gpu" else node


def images(device: str) -> Any:
    """Three images of different sizes."""
    return _given(_IMAGES, device)


def frames(device: str) -> Any:
    """Sequences of two frames."""
    return fn.stack(images(device), fn.flip(images(device)), axis_name="F")


def _prepared(node: Any, **arguments: Any) -> Any:
    settings = {"mean": [120.0], "std": [60.0], "output_layout": "CHW"} | arguments
    mirror = fn.random.coin_flip(seed=4)
    return fn.crop_mirror_normalize(fn.resize(node, resize_shorter=24.0), crop=(15, 22), mirror=mirror, **settings)


def _remapped(device: str, **arguments: Any) -> Any:
    """Images taken from where two maps of another size say, some of which lie outside."""
    maps = [fn.random.uniform(device=device, shape=[31, 47], range=[-5.0, 45.0], seed=seed) for seed in (3, 4)]
    return fn.experimental.remap(images(device), *maps, **arguments)


def _waved(node: Any, **arguments: Any) -> Any:
    return fn.water(node, ampl_x=3.0, freq_y=0.2, mask=fn.random.coin_flip(seed=2), **arguments)


_KINDS = {"uint8": types.UINT8, "int16": types.INT16, "uint16": types.UINT16, "float": types.FLOAT}
_BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_TURN = [0.9, 0.2, 3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0]


def typed(device: str, kind: str) -> Any:
    """The images in another type, with negative values where it has such."""
    spread = 100 if kind == "uint16" else 1
    return fn.cast((images(device) - (0 if kind.startswith("u") else 128)) * spread, dtype=_KINDS[kind])


def planes(node: Any) -> Any:
    """The images with their channels first."""
    return fn.transpose(node, perm=[2, 0, 1])


def _window(device: str, *shape: int) -> Any:
    return fn.random.uniform(device=device, range=[-0.3, 0.4], shape=shape, seed=9)


def _perspective(node: Any, **arguments: Any) -> Any:
    return fn.experimental.warp_perspective(node, **({"matrix": _TURN} | arguments))


def _everywhere(device: str, value: Any) -> Any:
    """The same array for each sample."""
    node = fn.external_source(lambda: [value] * 3)
    return node.gpu() if device == "gpu" else node


def _perspective_by_input(device: str, **arguments: Any) -> Any:
    matrix = _everywhere(device, np.float32(_TURN).reshape(3, 3))
    return fn.experimental.warp_perspective(images(device), matrix, **arguments)


_GRID = np.stack(np.meshgrid(*[np.arange(0, 1, 0.125)] * 2), axis=-1).reshape(-1, 2)
_ANCHORS = np.concatenate([np.concatenate([_GRID, _GRID + size], axis=1) for size in (0.125, 0.25, 0.125) * 2])


def _boxes(device: str, **arguments: Any) -> Any:
    """Boxes, many of which overlap several anchors alike; none in the last sample."""
    rng = np.random.default_rng(8)
    starts = [rng.integers(0, 7, (count, 2)) / 8 for count in (40, 3, 0)]
    boxes = [np.float32(np.concatenate([s, s + rng.integers(1, 4, s.shape) / 8], axis=1)) for s in starts]
    labels = [np.arange(1, len(own) + 1, dtype=np.int32) for own in boxes]
    inputs = fn.external_source(lambda: (boxes, labels), num_outputs=2)
    inputs = [node.gpu() for node in inputs] if device == "gpu" else inputs
    encoded = fn.box_encoder(*inputs, anchors=_ANCHORS.reshape(-1).tolist(), **arguments)
    # One output for both: labels in a fifth column.
    return fn.cat(encoded[0], fn.cast(fn.reshape(encoded[1], shape=[-1, 1]), dtype=types.FLOAT), axis=1)


def _affine_by_input(node: Any, device: str, **arguments: Any) -> Any:
    matrix = np.float32([[0.9, 0.2, 3.0], [-0.1, 1.1, 2.0]])
    return fn.warp_affine(node, _everywhere(device, matrix), fill_value=5.0, **arguments)


def _mosaic(device: str, kind: str) -> Any:
    """Images of one channel and of even extents."""
    return fn.crop(fn.slice(typed(device, kind), 0, 1, axes=[2]), crop=[28, 26])


def _neighbourhoods() -> dict[str, Define]:
    """Operators whose pixels depend on those around them, with all borders and types."""
    cases: dict[str, Define] = {}
    size = {"mask_size": [4, 7], "anchor": [0, 5], "iterations": 2}
    for border in _BORDERS:
        cases[f"dilate, {border}"] = lambda d, b=border: fn.experimental.dilate(images(d), border_mode=b, **size)
        cases[f"perspective, {border}"] = lambda d, b=border: _perspective(images(d), border_mode=b, size=[70, 90])
    for kind in _KINDS:
        cases[f"erode {kind}"] = lambda d, k=kind: fn.experimental.erode(planes(typed(d, k)), mask_size=[1, 5])
        cases[f"median {kind}"] = lambda d, k=kind: fn.experimental.median_blur(typed(d, k))
        cases[f"perspective {kind}"] = lambda d, k=kind: _perspective(
            typed(d, k), interp_type=types.INTERP_CUBIC, fill_value=[3.0, 4.0, 5.0]
        )
    return cases


EXACT: dict[str, Define] = {
    "uniform": lambda device: fn.random.uniform(device=device, shape=[300], range=[-1.5, 3.7], seed=1 << 40),
    "uniform double": lambda device: fn.random.uniform(device=device, shape=[3, 4], dtype=types.FLOAT64),
    "uniform int16": lambda device: fn.random.uniform(device=device, shape=9, range=[-3.7, 9], dtype=types.INT16),
    "uniform uint64": lambda device: fn.random.uniform(device=device, shape=9, range=[2, 1e18], dtype=types.UINT64),
    "uniform values": lambda device: fn.random.uniform(device=device, shape=[50], values=[-5.5, 100.5, 7]),
    "uniform computed": lambda device: fn.random.uniform(
        device=device, range=fn.stack(fn.random.uniform(range=[0, 1]), fn.random.uniform(range=[1, 2]))
    ),
    "coins": lambda device: fn.random.coin_flip(device=device, shape=[100], probability=0.3),
    "certain coins": lambda device: fn.random.coin_flip(device=device, shape=[9], probability=1, dtype=types.BOOL),
    "erase": lambda device: fn.erase(images(device), anchor=[5, 3, 8, 7], shape=[9, 12, 40, 5], axis_names="HW"),
    "erase, channels": lambda device: fn.erase(
        images(device), anchor=[5, 1], shape=[9, 2], axis_names="HC", fill_value=[300.5, -7, 3]
    ),
    **{
        f"erase, {kind}": lambda device, kind=kind: fn.erase(
            fn.cast(images(device), dtype=kind), anchor=[5.6, 3], shape=[9, 12], axis_names="HW", fill_value=-700.4
        )
        for kind in (types.INT16, types.UINT32, types.UINT64, types.INT64, types.FLOAT16, types.FLOAT)
    },
    "multi_paste, overlapping": lambda device: fn.multi_paste(
        images(device),
        in_ids=np.array([0, 2, 1, 0], np.int32),
        shapes=np.array([[20, 30], [25, 20], [9, 9], [7, 5]], np.int32),
        out_anchors=np.array([[3, 5], [10, 1], [12, 7], [39, 40]], np.int32),
        output_size=[50, 47],
    ),
    "coord_transform of 4": lambda device: fn.coord_transform(
        fn.random.uniform(device=device, shape=[30, 4], seed=5),
        M=[0.5 * n for n in range(16)],
        T=[1.0, 2.0, 3.0, 4.0],
    ),
    "salt and pepper": lambda device: fn.noise.salt_and_pepper(images(device), prob=0.4),
    "salt and pepper, planes": lambda device: fn.noise.salt_and_pepper(
        fn.transpose(images(device), perm=[2, 0, 1]), prob=0.4, salt_val=9, pepper_val=3
    ),
    "salt and pepper, channels": lambda device: fn.noise.salt_and_pepper(
        fn.cast(images(device), dtype=types.FLOAT), prob=0.4, per_channel=True
    ),
    "shots": lambda device: fn.noise.shot(images(device), factor=fn.random.uniform(range=[1, 20])),
    "shots of floats": lambda device: fn.noise.shot(fn.cast(images(device), dtype=types.FLOAT)),
    "grid": lambda device: fn.grid_mask(
        fn.cast(images(device), dtype=types.INT16), tile=7, angle=fn.random.uniform(range=[0, 1]), shift_x=3.5
    ),
    "ball": lambda device: fn.sphere(images(device), interp_type=types.INTERP_LINEAR, fill_value=7.0),
    "waves": lambda device: _waved(images(device)),
    "waves of floats": lambda device: _waved(
        fn.cast(images(device), dtype=types.FLOAT), interp_type=types.INTERP_LINEAR, fill_value=-2.5
    ),
    "remap": _remapped,
    "remap to the nearest": lambda device: _remapped(device, interp=types.INTERP_NN, pixel_origin="center"),
    **_neighbourhoods(),
    **{
        f"debayer {kind}, {blue}": lambda device, k=kind, b=blue: fn.debayer(_mosaic(device, k), blue_position=b)
        for kind in ("uint8", "uint16")
        for blue in ([0, 0], [0, 1], [1, 0], [1, 1])
    },
    "jpeg": lambda device: fn.jpeg_compression_distortion(
        images(device), quality=fn.random.uniform(range=[1, 100], dtype=types.INT32)
    ),
    "jpeg of frames": lambda device: fn.jpeg_compression_distortion(frames(device), quality=90),
    **{
        f"jpeg of {height} x {width}": lambda device, h=height, w=width: fn.jpeg_compression_distortion(
            fn.crop(images(device), crop=[h, w])
        )
        for height, width in ((1, 1), (2, 5), (17, 4), (16, 16), (9, 6), (32, 27))
    },
    "affine by an input": lambda device: _affine_by_input(images(device), device),
    "affine by an input, inverted": lambda device: _affine_by_input(frames(device), device, inverse_map=False),
    "affine of volumes by an input": lambda device: fn.warp_affine(
        fn.reinterpret(frames(device), layout="DHWC"),
        _everywhere(device, np.float32([[0.9, 0.1, 0.0, 2.0], [-0.1, 0.8, 0.1, 1.0], [0.0, 0.01, 1.1, -0.1]])),
        inverse_map=False,
    ),
    "slice at numbers on the device": lambda device: fn.slice(
        images(device), _everywhere(device, np.float32([0.1, 0.3])), _everywhere(device, np.float32([0.5, 0.6]))
    ),
    "boxes": lambda device: _boxes(device, criteria=0.3),
    "equalize": lambda device: fn.equalize(images(device)),
    "equalize planes of frames": lambda device: fn.equalize(fn.transpose(frames(device), perm=[0, 3, 1, 2])),
    "equalize a constant": lambda device: fn.equalize(_everywhere(device, np.full((70, 90), 9, np.uint8))),
    "clahe": lambda device: fn.clahe(images(device), tiles_x=3, tiles_y=4, clip_limit=2.5),
    "clahe of channels": lambda device: fn.clahe(images(device), tiles_x=4, tiles_y=4, clip_limit=0.0, luma_only=False),
    "clahe of many tiles": lambda device: fn.clahe(
        fn.slice(images(device), 0, 1, axes=[2]), tiles_x=70, tiles_y=2, clip_limit=40.0
    ),
    "median of planes": lambda device: fn.experimental.median_blur(planes(images(device)), window_size=5),
    "median of int32": lambda device: fn.experimental.median_blur(
        fn.cast(images(device), dtype=types.INT32) * -50000, window_size=[7, 3]
    ),
    "median of frames": lambda device: fn.experimental.median_blur(frames(device), window_size=[1, 9]),
    "perspective to the nearest": lambda device: _perspective(planes(images(device)), interp_type=types.INTERP_NN),
    "perspective inverted": lambda device: _perspective(images(device), inverse_map=False, pixel_origin="center"),
    "perspective by an input": _perspective_by_input,
    "perspective by an input, inverted": lambda device: _perspective_by_input(device, inverse_map=False),
}
"""Equal to the last bit."""

CLOSE: dict[str, Define] = {
    "normal": lambda device: fn.random.normal(device=device, shape=[300], mean=3, stddev=2),
    "normal int32": lambda device: fn.random.normal(device=device, shape=[300], stddev=1e6, dtype=types.INT32),
    "normal uint8": lambda device: fn.random.normal(device=device, shape=[300], mean=9, stddev=9, dtype=types.UINT8),
    "noise": lambda device: fn.noise.gaussian(images(device), stddev=fn.random.uniform(range=[1, 20])),
    "noise int64": lambda device: fn.noise.gaussian(fn.cast(images(device), dtype=types.INT64), stddev=20.0),
    **{
        f"filter {kind}": lambda device, k=kind: fn.filter(typed(device, k), _window(device, 3, 4), border="clamp")
        for kind in _KINDS
    },
    "boxes, offset": lambda device: _boxes(
        device, offset=True, scale=300.0, means=[0.1] * 4, stds=[0.1, 0.1, 0.2, 0.2]
    ),
    "filter to floats": lambda device: fn.filter(
        planes(images(device)), _window(device, 15, 14) * 0.005, dtype=types.FLOAT
    ),
    "filter of frames": lambda device: fn.filter(frames(device), _window("cpu", 2, 5), border="wrap", anchor=[0, 4]),
    "filter, valid": lambda device: fn.filter(images(device), _window(device, 2, 5), mode="valid"),
    "filter in a constant": lambda device: fn.filter(
        images(device), _window(device, 5, 1), _everywhere(device, np.uint8(200)), border="constant"
    ),
    "resized frames": lambda device: fn.resize(frames(device), size=(9, 7), dtype=types.FLOAT),
    "normalized": lambda device: fn.normalize(images(device)),
    "normalized together": lambda device: fn.normalize(images(device), axes=[0, 1], batch=True, ddof=1),
    **AUDIO,
    "frames without a kernel": lambda device: fn.laplacian(frames(device), window_size=5, dtype=types.FLOAT),
}
"""Integers within 1, real numbers within 1e-5."""

NORMALIZED: dict[str, Define] = {
    "three channels": lambda device: _prepared(images(device)),
    "six channels": lambda device: _prepared(_given(_SIX_CHANNELS, device)),
    "padded bytes": lambda device: _prepared(
        images(device), dtype=types.INT8, std=[1.0], pad_output=True, output_layout="HWC"
    ),
    "halves": lambda device: _prepared(images(device), dtype=types.FLOAT16),
}
"""Resized, rounded to a byte and then normalized by 60 at least: within the sixtieth that a byte's step becomes."""


def results(define: Define, device: str, batches: int = 3) -> list[np.ndarray]:
    """The samples that some batches give."""
    pipeline = pipeline_def(lambda: define(device), batch_size=3, num_threads=1, device_id=0, seed=7)()
    pipeline.build()
    samples = [np.array(t) for _ in range(batches) for t in pipeline.run()[0].as_cpu()]
    pipeline.close()
    return samples


def check_equal(define: Define) -> None:
    """Raises AssertionError unless CPU and GPU give the same bits."""
    for cpu, gpu in zip(results(define, "cpu"), results(define, "gpu")):
        assert cpu.dtype == gpu.dtype
        np.testing.assert_array_equal(cpu, gpu)


def check_close(define: Define, tolerance: float = 1e-5) -> None:
    """Raises AssertionError unless integers differ by at most 1 and real numbers by at most ``tolerance``."""
    for cpu, gpu in zip(results(define, "cpu"), results(define, "gpu")):
        assert cpu.dtype == gpu.dtype
        whole = cpu.dtype.kind in "iu"
        wide = np.float64 if not whole or cpu.dtype.itemsize < 8 else cpu.dtype
        np.testing.assert_allclose(cpu.astype(wide), gpu.astype(wide), rtol=1e-5, atol=1 if whole else tolerance)
