"""Records the results of the installed torchvision and transformers, for tests that run without them."""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from classes import classes, is_followed, saved_configuration
from configurations import CONFIGURATIONS, FAMILIES, NEEDED, SMALL, SOUNDS, VIDEOS
from libraries import torchvision_functional, versions
from processors import (
    BACKENDS,
    SOUND_CALLS,
    backends_of,
    by_feature_extractor,
    by_transformers,
    by_video_processor,
    frames_by_class,
    picture_of,
    pictures,
    result_or_refusal,
    sounds,
    strange_files,
    videos,
)
from resizing import cases, expected
from saved import results_of_class
from settings import recorded

from calls import recorded_calls

_FOLDER = Path(__file__).parent / "recorded"
FAMILIES_RECORDED, SETTINGS_RECORDED = _FOLDER / "families.json", _FOLDER / "settings.json"
CALLS_RECORDED, SAVED_RECORDED = _FOLDER / "calls.json", _FOLDER / "saved.json"
PUBLISHED_RECORDED = _FOLDER / "published.json"
RECORDED, PROCESSED = _FOLDER / "torchvision.npz", _FOLDER / "transformers.npz"
CASES, MOST, SEED = 120, 48, 7
PICTURES, PICTURE_MOST = 4, 90


def main() -> None:
    """Write all recorded results again; with --missing, only add entries that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--missing", action="store_true", help="keep what is recorded, and record configurations that are new"
    )
    missing = parser.parse_args().missing
    warnings.simplefilter("ignore")
    if not missing:
        _record_arrays()
    paths = FAMILIES_RECORDED, SETTINGS_RECORDED, CALLS_RECORDED
    families, settings, calls = (json.loads(path.read_text()) if missing else {} for path in paths)
    FAMILIES_RECORDED.write_text(by_line(_families(families)))
    SETTINGS_RECORDED.write_text(by_line(_of_each(recorded, settings)))
    CALLS_RECORDED.write_text(by_line(_of_each(recorded_calls, calls)))
    SAVED_RECORDED.write_text(by_line(_saved(json.loads(SAVED_RECORDED.read_text()))))
    PUBLISHED_RECORDED.write_text(by_line(_published()))


def _record_arrays() -> None:
    """Write the two files of complete results, which are arrays."""
    results = {str(k): expected(case, case.image()) for k, case in enumerate(cases("torchvision", CASES, MOST, SEED))}
    np.savez_compressed(RECORDED, versions=np.array(versions("torchvision")), **results)
    processed = {
        f"{name} {backend} {number}": by_transformers(CONFIGURATIONS[name], backend, [picture.image])["pixel_values"][0]
        for name in SMALL
        for backend in BACKENDS
        for number, picture in enumerate(pictures(PICTURES, PICTURE_MOST))
    }
    np.savez_compressed(PROCESSED, versions=np.array(versions("transformers")), **processed)
    print(f"{len(results)} results of {versions('torchvision')}, {len(processed)} of {versions('transformers')}")


def digest_of(value: Any) -> dict[str, Any]:
    """Return a result in its recorded form: type, shape, a digest of its bytes, and its first values."""
    array = np.ascontiguousarray(value)
    begin = [each if isinstance(each, str) else float(each) for each in array.reshape(-1)[:4].tolist()]
    digest = hashlib.blake2b(array.tobytes(), digest_size=12).hexdigest()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "digest": digest, "begin": begin}


def _digests(compute: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Return the recorded form of each output; None if the inputs are refused, or do not fit into one tensor."""
    try:
        return {key: digest_of(value) for key, value in compute().items()}
    except (ValueError, RuntimeError, IndexError):
        return None


def by_line(told: Mapping[str, Any]) -> str:
    """Return a JSON object with one line for each key, so that new keys only add lines to the file."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in told.items()) + "\n}\n"


def _of_each(record: Callable[[str, str], Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record for each configuration and backend; entries of ``held`` are copied, and not recorded again."""
    names = [(name, backend) for name in (*SMALL, *FAMILIES) for backend in backends_of(name)]
    keys = {f"{name} {backend}": (name, backend) for name, backend in names}
    return {key: held[key] if key in held else record(*of) for key, of in keys.items()}


def _families(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return digests of the outputs of transformers' processors, for each configuration and backend.

    Inputs are pictures (each alone, and all in one call), strange files, videos, numbers of frames to select from, and sounds.
    Entries of ``held`` are copied, and not recorded again.
    """
    told: dict[str, Any] = {"versions": versions("transformers")}

    def record(key: str, compute: Callable[[], Any]) -> None:
        told[key] = held[key] if key in held else compute()

    given = [picture.image for picture in pictures(PICTURES, PICTURE_MOST, slender=True)]
    for name in FAMILIES:
        for backend in backends_of(name):
            record(f"{name} {backend}", partial(_of_images, name, backend, given))
    strange = {what: picture_of(file).image for what, file in strange_files().items()}
    for name in (*SMALL, *FAMILIES):
        for backend in backends_of(name):
            record(f"strange {name} {backend}", partial(_of_strange, name, backend, strange))
    for name, configuration in VIDEOS.items():
        record(f"video {name}", partial(_of_videos, configuration))
        record(f"frames {name}", partial(frames_by_class, configuration))
    for name, configuration in SOUNDS.items():
        record(f"sound {name}", partial(_of_sounds, configuration))
    return told


def _saved(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return, for each class of transformers that presets support, the configuration that `save_pretrained` writes, and results.

    Classes are constructed with their default settings and those in `NEEDED`. Classes that need a library that is not installed
    keep their entry in ``held``.
    """
    torchvision_functional()
    import transformers

    told: dict[str, Any] = {}
    for each in classes():
        if not is_followed(each.name, each.key):
            continue
        try:
            made = getattr(transformers, each.name)(**NEEDED.get(each.name, {}))
        except ImportError:
            told[each.name] = held[each.name]
            continue
        written = saved_configuration(made, each.key)
        told[each.name] = {"configuration": written, "results": results_of_class(written)}
    return told


def _published() -> dict[str, Any]:
    """Return, by location, configurations that were published with models, and the results of the classes that they name."""
    held = json.loads(PUBLISHED_RECORDED.read_text())
    return {
        where: {"configuration": each["configuration"], "results": results_of_class(each["configuration"])}
        for where, each in held.items()
    }


def _of_images(name: str, backend: str, given: list[Any]) -> list[dict[str, Any] | None]:
    """Return digests of the outputs for each image alone, and then for all images in one call."""
    calls = *([image] for image in given), given
    return [_digests(partial(by_transformers, CONFIGURATIONS[name], backend, images)) for images in calls]


def _of_strange(name: str, backend: str, given: Mapping[str, Any]) -> dict[str, str]:
    return {
        what: result_or_refusal(partial(by_transformers, CONFIGURATIONS[name], backend, [image]))
        for what, image in given.items()
    }


def _of_videos(configuration: Mapping[str, object]) -> list[dict[str, Any] | None]:
    """Return digests of the outputs for each video alone, and then for all videos in one call."""
    calls = *([video] for video in videos()), videos()
    return [_digests(partial(by_video_processor, configuration, each)) for each in calls]


def _of_sounds(configuration: Mapping[str, object]) -> list[dict[str, Any] | None]:
    """Return digests of the outputs for each sound alone, and then for all sounds in each call of `SOUND_CALLS`."""
    alone = [_digests(partial(by_feature_extractor, configuration, [sound])) for sound in sounds()]
    return alone + [_digests(partial(by_feature_extractor, configuration, sounds(), **call)) for call in SOUND_CALLS]


if __name__ == "__main__":
    main()
