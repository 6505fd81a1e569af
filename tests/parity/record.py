"""Writes what the installed torchvision and transformers give for the cases that the tests hold us to without them."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from calls import recorded_calls
from configurations import CONFIGURATIONS, FAMILIES, SMALL, VIDEOS
from libraries import versions
from processors import (
    BACKENDS,
    backends_of,
    by_transformers,
    by_video_processor,
    frames_by_class,
    picture_of,
    pictures,
    result_or_refusal,
    strange_files,
    videos,
)
from resizing import cases, expected
from settings import recorded

_FOLDER = Path(__file__).parent / "recorded"
FAMILIES_RECORDED, SETTINGS_RECORDED = _FOLDER / "families.json", _FOLDER / "settings.json"
CALLS_RECORDED = _FOLDER / "calls.json"
RECORDED, PROCESSED = _FOLDER / "torchvision.npz", _FOLDER / "transformers.npz"
CASES, MOST, SEED = 120, 48, 7
PICTURES, PICTURE_MOST = 4, 90


def main() -> None:
    """Writes the files anew."""
    warnings.simplefilter("ignore")
    results = {str(k): expected(case, case.image()) for k, case in enumerate(cases("torchvision", CASES, MOST, SEED))}
    np.savez_compressed(RECORDED, versions=np.array(versions("torchvision")), **results)
    processed = {
        f"{name} {backend} {number}": by_transformers(CONFIGURATIONS[name], backend, [picture.image])["pixel_values"][0]
        for name in SMALL
        for backend in BACKENDS
        for number, picture in enumerate(pictures(PICTURES, PICTURE_MOST))
    }
    np.savez_compressed(PROCESSED, versions=np.array(versions("transformers")), **processed)
    FAMILIES_RECORDED.write_text(json.dumps(_families(), indent=1) + "\n")
    SETTINGS_RECORDED.write_text(_by_line(recorded))
    CALLS_RECORDED.write_text(_by_line(recorded_calls))
    print(f"{len(results)} results of {versions('torchvision')}, {len(processed)} of {versions('transformers')}")


def digest_of(value: Any) -> dict[str, Any]:
    """A result as it is recorded: type, shape, a digest of its bytes, and where it begins."""
    array = np.ascontiguousarray(value)
    begin = [float(number) for number in array.reshape(-1)[:4]]
    digest = hashlib.blake2b(array.tobytes(), digest_size=12).hexdigest()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "digest": digest, "begin": begin}


def _digests(compute: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Of each result, or None where the images do not fit into one tensor."""
    try:
        return {key: digest_of(value) for key, value in compute().items()}
    except (ValueError, RuntimeError):
        return None


def _by_line(record: Callable[[str, str], Any]) -> str:
    """A line for each configuration and library."""
    names = [(name, backend) for name in (*SMALL, *FAMILIES) for backend in backends_of(name)]
    lines = (f"{json.dumps(f'{name} {backend}')}: {json.dumps(record(name, backend))}" for name, backend in names)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _families() -> dict[str, Any]:
    """For each configuration and library, what the class gives of all pictures in one call, or of each."""
    given = [picture.image for picture in pictures(PICTURES, PICTURE_MOST, slender=True)]
    held: dict[str, Any] = {"versions": versions("transformers")}
    for name in FAMILIES:
        for backend in backends_of(name):
            held[f"{name} {backend}"] = [
                _digests(partial(by_transformers, CONFIGURATIONS[name], backend, images))
                for images in (*([image] for image in given), given)
            ]
    strange = {what: picture_of(file).image for what, file in strange_files().items()}
    for name in (*SMALL, *FAMILIES):
        for backend in backends_of(name):
            held[f"strange {name} {backend}"] = {
                what: result_or_refusal(partial(by_transformers, CONFIGURATIONS[name], backend, [image]))
                for what, image in strange.items()
            }
    for name, configuration in VIDEOS.items():
        given = (*([video] for video in videos()), videos())
        held[f"video {name}"] = [_digests(partial(by_video_processor, configuration, each)) for each in given]
        held[f"frames {name}"] = frames_by_class(configuration)
    return held


if __name__ == "__main__":
    main()
