"""Records what DALI's random operators give: `python make_random.py` where DALI is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BATCH_SIZE, ITERATIONS, SEED = 3, 2, 1234
IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def image(dali: Any, dtype: str = "UINT8") -> Any:
    data = dali.fn.reshape(dali.types.Constant(IMAGE, device="cpu"), layout="HWC")
    return data if dtype == "UINT8" else dali.fn.cast(data, dtype=getattr(dali.types, dtype))


def definitions() -> dict[str, Callable[[Any], Any]]:
    """Functions of a DALI-like module that define one output each."""
    cases: dict[str, Callable[[Any], Any]] = {
        "uniform": lambda dali: dali.fn.random.uniform(),
        "uniform_shape": lambda dali: dali.fn.random.uniform(range=[-1.5, 3.7], seed=1234567890123, shape=[2, 5]),
        "uniform_values": lambda dali: dali.fn.random.uniform(values=[-5.5, 100.5, 7], shape=[20]),
        "uniform_like": lambda dali: dali.fn.random.uniform(image(dali), seed=5),
        "normal": lambda dali: dali.fn.random.normal(mean=3.1, stddev=1.7, shape=[20]),
        "coin_flip": lambda dali: dali.fn.random.coin_flip(probability=0.3, shape=[30]),
        "choice": lambda dali: dali.fn.random.choice(7, shape=[20]),
        "choice_weighted": lambda dali: dali.fn.random.choice(4, p=[0.1, 0.2, 0.3, 0.4], shape=[20]),
        "choice_rows": lambda dali: dali.fn.random.choice(image(dali), shape=[3]),
        "beta": lambda dali: dali.fn.random.beta(alpha=0.5, beta=2.5, shape=[20]),
        "permutation": lambda dali: dali.fn.batch_permutation(),
        "gaussian": lambda dali: dali.fn.noise.gaussian(image(dali), mean=3.1, stddev=30),
        "gaussian_float": lambda dali: dali.fn.noise.gaussian(image(dali, "FLOAT"), stddev=0.1),
        "shot": lambda dali: dali.fn.noise.shot(image(dali), factor=5),
        "salt_and_pepper": lambda dali: dali.fn.noise.salt_and_pepper(image(dali), prob=0.3, salt_vs_pepper=0.4),
        "window_start": lambda dali: dali.fn.random_crop_generator(np.int64([480, 640]))[0],
        "window_extents": lambda dali: dali.fn.random_crop_generator(np.int64([480, 640]))[1],
        "window_too_narrow": lambda dali: dali.fn.random_crop_generator(np.int64([10, 1000]))[1],
        "roi": lambda dali: dali.fn.roi_random_crop(roi_start=[0, 5], roi_end=[1000, 10], crop_shape=[10, 10]),
        "second_seed": lambda dali: dali.fn.random.uniform() + dali.fn.random.normal(),
    }
    for dtype in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FLOAT64"):
        cases[f"uniform_{dtype}"] = lambda dali, dtype=dtype: dali.fn.random.uniform(
            range=[-5.5, 100.5], dtype=getattr(dali.types, dtype), shape=[20]
        )
        cases[f"normal_{dtype}"] = lambda dali, dtype=dtype: dali.fn.random.normal(
            mean=5.0, stddev=60.0, dtype=getattr(dali.types, dtype), shape=[20]
        )
    return cases


def run(dali: Any, define: Callable[[Any], Any]) -> list[np.ndarray]:
    """The samples of all batches, in order."""
    settings = {"batch_size": BATCH_SIZE, "num_threads": 1, "device_id": None, "seed": SEED}
    pipeline = dali.pipeline_def(lambda: define(dali), **settings)()
    pipeline.build()
    return [np.array(sample) for _ in range(ITERATIONS) for sample in pipeline.run()[0]]


if __name__ == "__main__":
    import nvidia.dali
    import nvidia.dali.fn
    import nvidia.dali.types

    recorded = {
        f"{name}/{index}": sample
        for name, define in definitions().items()
        for index, sample in enumerate(run(nvidia.dali, define))
    }
    np.savez_compressed(Path(__file__).parent / "random" / "random.npz", **recorded)
