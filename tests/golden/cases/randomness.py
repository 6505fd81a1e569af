"""Random operators: exact numbers, over several batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Family, unpacked

FAMILY = Family("randomness", gpu=False)
IMAGE = np.random.RandomState(0).randint(0, 256, (5, 6, 3)).astype(np.uint8)
INTEGERS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64")
NUMBERS = (*INTEGERS, "FLOAT", "FLOAT64")


def image(dali: Any, dtype: str = "UINT8", layout: str = "HWC") -> Any:
    data = dali.fn.reshape(dali.types.Constant(IMAGE, device="cpu"), layout="HWC")
    if layout == "CHW":
        data = dali.fn.transpose(data, perm=[2, 0, 1])
    return data if dtype == "UINT8" else dali.fn.cast(data, dtype=getattr(dali.types, dtype))


DEFINITIONS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda dali: dali.fn.random.uniform(),
    "uniform range": lambda dali: dali.fn.random.uniform(range=[-1.5, 3.7], seed=1234567890123, shape=[60]),
    "uniform values": lambda dali: dali.fn.random.uniform(values=[-5.5, 100.5, 7], shape=[60]),
    "uniform like": lambda dali: dali.fn.random.uniform(image(dali), seed=5),
    "uniform empty": lambda dali: dali.fn.random.uniform(shape=[0, 3]),
    "uniform scalar shape": lambda dali: dali.fn.random.uniform(shape=3),
    "uniform shape computed": lambda dali: dali.fn.random.uniform(
        shape=dali.fn.random.uniform(range=[1, 9], shape=[2], dtype=dali.types.INT32)
    ),
    "uniform range computed": lambda dali: dali.fn.random.uniform(
        range=dali.fn.stack(dali.fn.random.uniform(range=[0, 1]), dali.fn.random.uniform(range=[1, 2]))
    ),
    "uniform reversed": lambda dali: dali.fn.random.uniform(range=[3, 1]),
    "uniform point": lambda dali: dali.fn.random.uniform(range=[1, 1]),
    "uniform three": lambda dali: dali.fn.random.uniform(range=[1, 2, 3]),
    "uniform shape twice": lambda dali: dali.fn.random.uniform(image(dali), shape=[3]),
    "uniform negative shape": lambda dali: dali.fn.random.uniform(shape=[-3]),
    "uniform half": lambda dali: dali.fn.random.uniform(dtype=dali.types.FLOAT16),
    "uniform bool": lambda dali: dali.fn.random.uniform(dtype=dali.types.BOOL),
    "legacy uniform": lambda dali: dali.fn.uniform(range=[0, 1], shape=[5]),
    "normal": lambda dali: dali.fn.random.normal(shape=[60]),
    "normal scaled": lambda dali: dali.fn.random.normal(mean=3.1, stddev=1.7, shape=[60], seed=5),
    "normal negative": lambda dali: dali.fn.random.normal(stddev=-1),
    "normal computed": lambda dali: dali.fn.random.normal(
        mean=dali.fn.random.normal(), stddev=dali.fn.random.uniform()
    ),
    "legacy normal": lambda dali: dali.fn.normal_distribution(mean=0.5, shape=[5]),
    "coin": lambda dali: dali.fn.random.coin_flip(),
    "coin bool": lambda dali: dali.fn.random.coin_flip(dtype=dali.types.BOOL, shape=[20]),
    "coin uint8": lambda dali: dali.fn.random.coin_flip(dtype=dali.types.UINT8, shape=[20]),
    "coin float": lambda dali: dali.fn.random.coin_flip(dtype=dali.types.FLOAT),
    "legacy coin": lambda dali: dali.fn.coin_flip(probability=0.3),
    "window, one area": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_area=[0.5]
    ),
    "window, an area by itself": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_area=0.5
    ),
    "window, three areas": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_area=[0.1, 0.2, 0.3]
    ),
    "window, areas reversed": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_area=[0.9, 0.1]
    ),
    "window, one ratio": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_aspect_ratio=[1.0]
    ),
    "window, ratios from 0": lambda dali: dali.fn.random_crop_generator(
        dali.types.Constant(np.array([100, 200], np.int64), device="cpu"), random_aspect_ratio=[0.0, 1.0]
    ),
    "choice": lambda dali: dali.fn.random.choice(7, shape=[60]),
    "choice below 2**40": lambda dali: dali.fn.random.choice(
        dali.types.Constant(np.array(1 << 40), dtype=dali.types.INT64)
    ),
    "choice below 2**32": lambda dali: dali.fn.random.choice(
        dali.types.Constant(np.array(1 << 32), dtype=dali.types.INT64), shape=[5]
    ),
    "uniform values and range": lambda dali: dali.fn.random.uniform(values=[1.0, 4.0], range=[0, 1], shape=[5]),
    "beta of tables": lambda dali: dali.fn.random.beta(alpha=np.ones((1, 1), np.float32)),
    "choice of one probability": lambda dali: dali.fn.random.choice(4, p=0.25, shape=[5]),
    "choice scalar": lambda dali: dali.fn.random.choice(7),
    "choice weighted": lambda dali: dali.fn.random.choice(4, p=[0.1, 0.2, 0.3, 0.4], shape=[60]),
    "choice array": lambda dali: dali.fn.random.choice(np.float32([0.5, 2, 8]), shape=[4, 5]),
    "choice rows": lambda dali: dali.fn.random.choice(image(dali)),
    "choice a row of rows": lambda dali: dali.fn.random.choice(image(dali), shape=[3]),
    "choice a table of rows": lambda dali: dali.fn.random.choice(image(dali), shape=[3, 2]),
    "choice of weighted rows": lambda dali: dali.fn.random.choice(
        np.int32([[1, 2], [3, 4], [5, 6]]), p=[0.5, 0.25, 0.25], shape=[50]
    ),
    "choice like": lambda dali: dali.fn.random.choice(image(dali), np.zeros(4, np.float32)),
    "choice uint8": lambda dali: dali.fn.random.choice(dali.types.Constant(5).uint8()),
    "choice too few": lambda dali: dali.fn.random.choice(3, p=[0.5, 0.5]),
    "choice wrong sum": lambda dali: dali.fn.random.choice(2, p=[0.5, 0.6]),
    "choice negative": lambda dali: dali.fn.random.choice(2, p=[-0.5, 1.5]),
    "choice of nothing": lambda dali: dali.fn.random.choice(0),
    "choice of a float": lambda dali: dali.fn.random.choice(2.5),
    "beta": lambda dali: dali.fn.random.beta(shape=[60]),
    "beta small": lambda dali: dali.fn.random.beta(alpha=0.5, beta=2.5, shape=[60]),
    "beta double": lambda dali: dali.fn.random.beta(alpha=20, beta=1.5, shape=[60], dtype=dali.types.FLOAT64),
    "beta both small, bits": lambda dali: dali.fn.reinterpret(
        dali.fn.random.beta(alpha=0.2, beta=0.5, shape=[300]), dtype=dali.types.INT32
    ),
    "beta both tiny": lambda dali: dali.fn.random.beta(alpha=1e-3, beta=1e-2, shape=[300], dtype=dali.types.FLOAT64),
    "beta negative": lambda dali: dali.fn.random.beta(alpha=-1),
    "beta int": lambda dali: dali.fn.random.beta(dtype=dali.types.INT32),
    "gaussian": lambda dali: dali.fn.noise.gaussian(image(dali), mean=3.1, stddev=30),
    "gaussian planes": lambda dali: dali.fn.noise.gaussian(image(dali, layout="CHW"), stddev=5),
    "gaussian computed": lambda dali: dali.fn.noise.gaussian(image(dali), stddev=dali.fn.random.uniform(range=[1, 50])),
    "gaussian half": lambda dali: dali.fn.noise.gaussian(image(dali, "FLOAT16")),
    "gaussian scalar": lambda dali: dali.fn.noise.gaussian(np.float32(5)),
    "shot": lambda dali: dali.fn.noise.shot(image(dali), factor=20),
    "shot weak": lambda dali: dali.fn.noise.shot(image(dali, "FLOAT"), factor=0.1),
    "shot whose reciprocal is rounded": lambda dali: dali.fn.noise.shot(image(dali), factor=0.3),
    "shot negative": lambda dali: dali.fn.noise.shot(np.float32([-1, -20, 0, 1, 5000])),
    "shot negative factor": lambda dali: dali.fn.noise.shot(np.float32([1, 20, 0, 1]), factor=-1),
    "salt and pepper": lambda dali: dali.fn.noise.salt_and_pepper(image(dali), prob=0.3, salt_vs_pepper=0.4),
    "salt and pepper values": lambda dali: dali.fn.noise.salt_and_pepper(
        image(dali), prob=0.3, salt_val=300.7, pepper_val=-3.6
    ),
    "salt and pepper channels": lambda dali: dali.fn.noise.salt_and_pepper(image(dali), prob=0.3, per_channel=True),
    "salt and pepper planes": lambda dali: dali.fn.noise.salt_and_pepper(image(dali, layout="CHW"), prob=0.3),
    "salt and pepper vector": lambda dali: dali.fn.noise.salt_and_pepper(np.ones(9, np.float32), prob=0.3),
    "salt and pepper table": lambda dali: dali.fn.noise.salt_and_pepper(np.ones((9, 2), np.float32), prob=0.3),
    "salt and pepper HW": lambda dali: dali.fn.noise.salt_and_pepper(
        dali.fn.reshape(np.ones((9, 2), np.float32), layout="HW"), prob=0.3
    ),
    "salt and pepper HW by element": lambda dali: dali.fn.noise.salt_and_pepper(
        dali.fn.reshape(np.ones((9, 2), np.float32), layout="HW"), prob=0.3, per_channel=True
    ),
    "salt and pepper too likely": lambda dali: dali.fn.noise.salt_and_pepper(image(dali), prob=1.3),
    "too much salt": lambda dali: dali.fn.noise.salt_and_pepper(image(dali), salt_vs_pepper=1.2),
    "crop window": lambda dali: dali.fn.random_crop_generator(np.int64([480, 640])),
    "crop window of HWC": lambda dali: dali.fn.random_crop_generator(np.int32([480, 640, 3])),
    "crop window of floats": lambda dali: dali.fn.random_crop_generator(np.float32([480, 640])),
    "crop window of a number": lambda dali: dali.fn.random_crop_generator(np.int64([480])),
    "crop window of nothing": lambda dali: dali.fn.random_crop_generator(np.int64([0, 4])),
    "crop window, empty area": lambda dali: dali.fn.random_crop_generator(np.int64([480, 640]), random_area=[0.5, 0.2]),
    "crop window, empty ratio": lambda dali: dali.fn.random_crop_generator(
        np.int64([480, 640]), random_aspect_ratio=[0.5, 0.2]
    ),
    "roi": lambda dali: dali.fn.roi_random_crop(roi_start=[0, 5], roi_end=[1000, 800], crop_shape=[10, 10]),
    "roi, small": lambda dali: dali.fn.roi_random_crop(roi_start=[0, 5], roi_end=[1000, 10], crop_shape=[10, 10]),
    "roi, in shape": lambda dali: dali.fn.roi_random_crop(
        roi_start=[0, 5], roi_shape=[1000, 6], crop_shape=[10, 10], in_shape=[1000, 12]
    ),
    "roi, image": lambda dali: dali.fn.roi_random_crop(
        image(dali), roi_start=[1, 2, 0], roi_shape=[2, 3, 3], crop_shape=[4, 4, 3]
    ),
    "roi, two axes of an image": lambda dali: dali.fn.roi_random_crop(
        image(dali), roi_start=[1, 2], roi_shape=[2, 3], crop_shape=[4, 4]
    ),
    "roi, too large an axis of an image": lambda dali: dali.fn.roi_random_crop(
        image(dali), roi_start=[1, 2], roi_shape=[2, 3], crop_shape=[4, 9]
    ),
    "roi, outside of an image": lambda dali: dali.fn.roi_random_crop(
        image(dali), roi_start=[1, 2], roi_shape=[2, 30], crop_shape=[4, 4]
    ),
    "roi, an axis too many at the start": lambda dali: dali.fn.roi_random_crop(
        image(dali), roi_start=[1, 2, 0], roi_end=[3, 5], crop_shape=[4, 4]
    ),
    "roi, more axes in shape": lambda dali: dali.fn.roi_random_crop(
        roi_start=[0, 5], roi_shape=[10, 6], crop_shape=[10, 10], in_shape=[1000, 12, 3]
    ),
    "roi, one extent in shape": lambda dali: dali.fn.roi_random_crop(
        roi_start=[0, 5], roi_shape=[100, 6], crop_shape=[10, 10], in_shape=[1000]
    ),
    "roi, one for all": lambda dali: dali.fn.roi_random_crop(roi_start=[3, 5], roi_end=[40], crop_shape=[10, 10]),
    "roi, reversed": lambda dali: dali.fn.roi_random_crop(roi_start=[3, 5], roi_end=[2, 8], crop_shape=[10, 10]),
    "roi, both": lambda dali: dali.fn.roi_random_crop(
        roi_start=[3, 5], roi_end=[9, 9], roi_shape=[2, 2], crop_shape=[1, 1]
    ),
    "roi, neither": lambda dali: dali.fn.roi_random_crop(roi_start=[3, 5], crop_shape=[10, 10]),
    "roi, outside": lambda dali: dali.fn.roi_random_crop(
        roi_start=[3, 5], roi_end=[40, 50], crop_shape=[10, 10], in_shape=[40, 40]
    ),
    "roi, too large": lambda dali: dali.fn.roi_random_crop(
        roi_start=[3, 5], roi_end=[40, 40], crop_shape=[10, 50], in_shape=[40, 40]
    ),
    "seeds of several": lambda dali: (
        dali.fn.random.uniform(),
        dali.fn.random.uniform(seed=77),
        dali.fn.random.normal(),
        dali.fn.noise.gaussian(image(dali, "FLOAT")),
        dali.fn.random.coin_flip(shape=[9]),
    ),
    "state": lambda dali: dali.fn.random.uniform(
        _random_state=dali.types.Constant(np.uint32([11, 22, 3, 0, 5, 7, 2])), shape=[3]
    ),
    "state of a window": lambda dali: dali.fn.random_crop_generator(
        np.int64([480, 640]), _random_state=dali.types.Constant(np.uint32([11, 22, 3, 0, 5, 7, 2]))
    ),
}


for name, define in DEFINITIONS.items():
    FAMILY.add(name, unpacked(define), exact=True, iterations=2)


def _numbers(distribution: str, dtype: str) -> Callable[[Any], Any]:
    settings = {"range": [-5.5, 100.5]} if distribution == "uniform" else {"mean": 5.0, "stddev": 60.0}
    return lambda dali: getattr(dali.fn.random, distribution)(
        dtype=getattr(dali.types, dtype), shape=[60], seed=5, **settings
    )


def _noise(kind: str, dtype: str) -> Callable[[Any], Any]:
    return lambda dali: getattr(dali.fn.noise, kind)(image(dali, dtype))


def _coins(probability: float) -> Callable[[Any], Any]:
    return lambda dali: dali.fn.random.coin_flip(probability=probability, shape=[60])


def _order(repetitions: bool, no_fixed_points: bool) -> Callable[[Any], Any]:
    return lambda dali: dali.fn.batch_permutation(allow_repetitions=repetitions, no_fixed_points=no_fixed_points)


def _windows(height: int, width: int) -> Callable[[Any], Any]:
    odd = {"random_area": [0.5, 0.6], "random_aspect_ratio": [1.9, 2.1], "num_attempts": 2}

    def define(dali: Any) -> Any:
        shape = np.int64([height, width])
        return *dali.fn.random_crop_generator(shape), *dali.fn.random_crop_generator(shape, **odd)

    return define


def _branches(dali: Any) -> Any:
    size = 8
    take = dali.fn.external_source(lambda: [np.bool_(i in (1, 2, 5, 7)) for i in range(size)])
    data = dali.fn.external_source(lambda: [np.zeros(5, np.float32)] * size)
    if take:
        noisy = dali.fn.noise.gaussian(data, seed=5)
        number = dali.fn.random.uniform()
        order = dali.fn.batch_permutation()
    else:
        noisy, number = data, 0.0
        order = -1
    return noisy, number, order


for dtype in NUMBERS:
    for distribution in ("uniform", "normal"):
        FAMILY.add(f"{distribution} {dtype}", _numbers(distribution, dtype), exact=True, iterations=2)
    for kind in ("gaussian", "salt_and_pepper", "shot"):
        FAMILY.add(f"{kind} {dtype}", _noise(kind, dtype), exact=True, iterations=2)
for probability in (-0.1, 0.0, 0.3, 1.0, 1.1):
    FAMILY.add(f"coin {probability}", _coins(probability), exact=True)
for repetitions in (False, True):
    for no_fixed_points in (False, True):
        for size in (1, 2, 5, 8, 50):
            FAMILY.add(
                f"permutation of {size}, {repetitions=}, {no_fixed_points=}",
                _order(repetitions, no_fixed_points),
                exact=True,
                iterations=2,
                options={"batch_size": size},
            )
for height in (1, 3, 7, 10, 480, 1000):
    for width in (1, 5, 10, 640, 1000):
        FAMILY.add(f"windows of {height}x{width}", _windows(height, width), exact=True, options={"batch_size": 24})
FAMILY.add("branches", _branches, exact=True, iterations=3, options={"batch_size": 8, "enable_conditionals": True})
