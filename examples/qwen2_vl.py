"""Serves Qwen2-VL's preprocessing with Triton, and compares it with transformers' in the same program: equal to the bit.

    pip install "penstock-triton[server,client,image]" torch torchvision transformers
    penstock setup
    python examples/qwen2_vl.py PHOTOGRAPH...

It writes a model folder from a `preprocessor_config.json`, starts Triton on it, and sends the photographs: all in one request,
and then each in its own, several at a time. The answers are what Qwen2-VL takes: the patches of all images in one tensor, and
their grid in time, height and width.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http

from penstock.presets import count_tokens
from penstock.serving.export import export_preset
from penstock.serving.server import LocalServer

MODEL = "qwen2_vl_preprocess"
# Qwen2-VL's settings besides its weights.
CONFIGURATION = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "min_pixels": 56 * 56,
    "max_pixels": 28 * 28 * 1280,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
OUTPUTS = ("pixel_values", "image_grid_thw")
_own = threading.local()


def ask(url: str, files: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Return the server's answer for some files, in one request."""
    if not hasattr(_own, "client"):
        _own.client = tritonclient.http.InferenceServerClient(url)
    tensor = tritonclient.http.InferInput("images", [len(files), 1], "BYTES")
    tensor.set_data_from_numpy(np.array(files, np.object_).reshape(-1, 1))
    answer = _own.client.infer(MODEL, [tensor])
    return {name: answer.as_numpy(name) for name in OUTPUTS}


def by_transformers(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """Return the result of transformers for the same files."""
    import transformers
    from transformers.image_utils import load_image

    processor = transformers.Qwen2VLImageProcessor.from_dict(CONFIGURATION)
    return dict(processor([load_image(str(path)) for path in paths], return_tensors="np"))


def compare(given: dict[str, Any], expected: dict[str, Any]) -> int:
    """Return how many values differ; a difference in shape or type counts as one."""
    return sum(
        int((given[name] != expected[name]).sum())
        if (given[name].shape, given[name].dtype) == (expected[name].shape, expected[name].dtype)
        else 1
        for name in OUTPUTS
    )


def main() -> int:
    """Serve, send requests, compare; return whether anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="+", type=Path, metavar="PHOTOGRAPH")
    parser.add_argument("--environment", type=Path, help="that Triton serves from; found by itself by default")
    options = parser.parse_args()
    files = [path.read_bytes() for path in options.photographs]
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "preprocessor_config.json"
        configuration.write_text(json.dumps(CONFIGURATION))
        repository = Path(folder) / "models"
        export_preset(configuration, repository / MODEL, batch_size=16)
        with LocalServer(repository, environment=options.environment) as server, ThreadPoolExecutor(4) as pool:
            together = ask(server.http_url, files[:16])
            list(pool.map(lambda file: ask(server.http_url, [file]), files))
            begin = time.perf_counter()
            apart = list(pool.map(lambda file: ask(server.http_url, [file]), files))
            took = time.perf_counter() - begin
    rows, columns = zip(*(part["image_grid_thw"][0, 1:] * 14 for part in apart))
    print(f"{len(files)} photographs: {together['pixel_values'].shape} patches in one request,")
    print(f"  or one by one, four at a time: {len(files) / took:.1f} a second")
    print(f"  tokens: {count_tokens(CONFIGURATION, list(zip(map(int, rows), map(int, columns))))}")
    begin = time.perf_counter()
    expected = by_transformers(options.photographs)
    print(f"transformers, in one thread of Python: {len(files) / (time.perf_counter() - begin):.1f} a second")
    joined = {name: np.concatenate([part[name] for part in apart]) for name in OUTPUTS}
    first = {name: value for name, value in by_transformers(options.photographs[:16]).items()}
    different = compare(together, first) + compare(joined, expected)
    print(f"values that differ: {different} of {joined['pixel_values'].size + together['pixel_values'].size}")
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main())
