"""Compares all image, video and sound processors of the installed transformers with presets, and lists those without a preset.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/classes.py [--write] [--only NAME]

Each processor of transformers is made with its default settings, and `penstock.plugin.transformers` makes another one from the
output of its `save_pretrained`. Both process pictures (tiny, odd and slender ones, in RGB, grey and with alpha), videos or sounds.
Classes that are new since the table was last written are printed, too.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import re
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from configurations import NEEDED
from definitions import distances
from libraries import torchvision_functional, versions
from PIL import Image
from processors import as_arrays, difference

from penstock.plugin.transformers import FeatureExtractor, ImageProcessor, VideoProcessor
from penstock.presets import PresetError, read_configuration
from penstock.presets.spectra import TOLERANCE

PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"
WRITTEN = Path(__file__).parent / "recorded" / "classes.json"
_MARK = "<!-- classes -->\n"
_KINDS = {
    "image_processing": ("images", "image_processor_type", ImageProcessor),
    "video_processing": ("videos", "video_processor_type", VideoProcessor),
    "feature_extraction": ("sounds", "feature_extractor_type", FeatureExtractor),
}
_MODEL = re.compile(rf"transformers\.models\.(?!auto\.)\w+\.({'|'.join(_KINDS)})_\w+")
# Verdicts from the best to the worst.
VERDICTS = ("equal", "colours", "as exact", "close", "different", "refused", "missing", "none")
_TOLD = {
    "equal": "equal in every value",
    "colours": "equal for RGB; grey, or images with alpha, otherwise",
    "as exact": f"no farther from the class's definition than the class, and within {TOLERANCE:g} of it",
    "close": f"within {TOLERANCE:g}",
    "different": "different values",
    "refused": "refused with the class's own settings, or what they are given",
    "missing": "not compared: a library is not installed",
    "none": "no preset",
}


class Class(NamedTuple):
    """A processor of transformers.

    Attributes:
        name: the class's name.
        kind: the kind of input: "images", "videos" or "sounds".
        key: the setting that names the class in a configuration, for example "image_processor_type".
        types: the types of models that use the class.
    """

    name: str
    kind: str
    key: str
    types: tuple[str, ...]


class Row(NamedTuple):
    """The result of comparing a class: its number of model types, the verdict, and the reason of the verdict."""

    name: str
    kind: str
    types: int
    verdict: str
    why: str


def main() -> None:
    """Compare; print a line for each class and the table; with --write, save both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table, in the docs, and the names of classes")
    parser.add_argument("--only", action="append", help="classes whose names begin so")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for each in classes():
        if each.name.startswith(tuple(options.only or [""])):
            rows.append(compared(each))
            print(*rows[-1], flush=True)
    known = json.loads(WRITTEN.read_text()) if WRITTEN.exists() else {}
    print(f"\n{versions('transformers')}; the table is of {known.get('versions')}")
    print("New classes:", ", ".join(row.name for row in rows if row.name not in known.get("classes", {})) or "none")
    print(table(rows))
    if options.write and not options.only:
        told = {"versions": versions("transformers"), "classes": {row.name: row.verdict for row in rows}}
        WRITTEN.write_text(json.dumps(told, indent=0) + "\n")
        head, _, rest = PAGE.read_text().partition(_MARK)
        _, heading, tail = rest.partition("\n#")
        PAGE.write_text(f"{head}{_MARK}{table(rows)}\n{heading}{tail}")


def table(rows: Sequence[Row]) -> str:
    """Return a table in Markdown, with a row for each kind of input and each verdict about its classes."""
    lines = ["| | | classes | model types | |", "| --- | --- | --: | --: | --- |"]
    for kind in ("images", "videos", "sounds"):
        for verdict in VERDICTS:
            own = [row for row in rows if (row.kind, row.verdict) == (kind, verdict)]
            names = "" if verdict == "equal" else ", ".join(f"`{row.name}`" for row in own)
            if own:
                types = sum(row.types for row in own)
                lines.append(f"| {kind} | {_TOLD[verdict]} | {len(own)} | {types} | {names} |")
    return "\n".join(lines)


def classes() -> Iterator[Class]:
    """Yield the processor classes of models, without their variants for PIL."""
    torchvision_functional()
    import transformers

    transformers.logging.set_verbosity_error()
    types = _model_types()
    for name in dir(transformers):
        if name.endswith(("ImageProcessor", "VideoProcessor", "FeatureExtractor")):
            # For classes that need a missing library, transformers has placeholders, which are defined in other modules.
            found = _MODEL.fullmatch(getattr(transformers, name).__module__)
            if found:
                kind, key, _ = _KINDS[found[1]]
                yield Class(name, kind, key, tuple(sorted(types[name])))


def _model_types() -> Mapping[str, set[str]]:
    """Return the model types of each class."""
    from transformers.models.auto import feature_extraction_auto, image_processing_auto, video_processing_auto

    told: dict[str, set[str]] = defaultdict(set)
    for names in (
        feature_extraction_auto.FEATURE_EXTRACTOR_MAPPING_NAMES,
        image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES,
        video_processing_auto.VIDEO_PROCESSOR_MAPPING_NAMES,
    ):
        for model, name in names.items():
            variants = [name] if isinstance(name, str) else list(name.values()) if name else []
            for variant in variants:
                if variant:
                    told[variant.removesuffix("Pil").removesuffix("Fast")].add(model)
    return told


def is_followed(name: str, key: str) -> bool:
    """Return whether presets support a class of transformers, perhaps only with other settings than its defaults."""
    try:
        read_configuration({key: name})
    except PresetError as error:
        return not str(error).startswith("No preset follows")
    return True


def compared(each: Class) -> Row:
    """Compare a class of transformers with its preset, and return the result."""
    verdict, why = _verdict(each)
    return Row(each.name, each.kind, len(each.types), verdict, why)


def saved_configuration(processor: Any, key: str) -> dict[str, Any]:
    """Return the configuration that a processor's `save_pretrained` writes; for timm's wrapper, which writes none, its arguments."""
    name = type(processor).__name__
    with tempfile.TemporaryDirectory() as folder:
        processor.save_pretrained(folder)
        written = [json.loads(path.read_text()) for path in Path(folder).iterdir()]
    return written[0] if written else {key: name, **NEEDED[name]}


def made(each: Class) -> Any:
    """Return a processor of a class of transformers, with its default settings except those in `NEEDED`."""
    import transformers

    return getattr(transformers, each.name)(**NEEDED.get(each.name, {}))


def preset_of(each: Class, theirs: Any) -> Any:
    """Return the processor of `penstock.plugin.transformers` that replaces ``theirs``, a processor of transformers."""
    processor = next(kind for what, _, kind in _KINDS.values() if what == each.kind)
    return processor(saved_configuration(theirs, each.key))


def _verdict(each: Class) -> tuple[str, str]:
    if not is_followed(each.name, each.key):
        return "none", ""
    try:
        theirs = made(each)
    except ImportError as error:
        return "missing", " ".join(str(error).split())[:200]
    try:
        ours = preset_of(each, theirs)
    except PresetError as error:
        return "refused", str(error)
    worst, reasons = "equal", []
    for what, given, call in CASES[each.kind](theirs):
        verdict, why = _of_case(theirs, ours, given, call)
        if what in _OTHER_COLOURS and verdict != "equal":
            verdict = "colours"
        if why:
            reasons.append(f"{what}: {why}")
        worst = max(worst, verdict, key=VERDICTS.index)
    if worst == "close" and each.kind == "sounds" and distances(each).is_as_exact:
        worst = "as exact"
    return worst, "; ".join(reasons)[:400]


def results_of_cases(processor: Any, kind: str, tensors: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the result of each case that a processor does not refuse."""
    for what, given, call in CASES[kind](processor):
        np.random.seed(0)
        try:
            # Copy the list of inputs, which some classes modify.
            values = processor(copy.copy(given), **arguments_of(processor, {**call, "return_tensors": tensors}))
        except Exception:  # classes raise any exception for input that they do not expect
            continue
        yield what, as_arrays(values)


def arguments_of(processor: Any, call: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a call without those that the processor does not accept."""
    parameters = inspect.signature(processor.__call__).parameters.values()
    names = {each.name for each in parameters}
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    return {key: value for key, value in call.items() if takes_all or key in names}


def _of_case(theirs: Any, ours: Any, given: Any, call: Mapping[str, object]) -> tuple[str, str]:
    """Return the verdict about one call, and its reason; any result is right if transformers' processor fails."""
    # The seed is for classes that choose at random; presets make the first choice after this seed.
    np.random.seed(0)
    try:
        # Copy the list of inputs, which some classes modify.
        expected = as_arrays(theirs(copy.copy(given), **arguments_of(theirs, call)))
    except Exception:
        return "equal", ""
    try:
        got = dict(ours(given, **{**call, "return_tensors": "np"}))
    except (ValueError, RuntimeError) as error:
        return "refused", " ".join(str(error).split())[-120:]
    return difference(expected, got, TOLERANCE)


_OTHER_COLOURS = ("grey", "alpha")


# -- inputs ------------------------------------------------------------------------------------------------------------


def _noise(height: int, width: int, mode: str, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    slope = np.add.outer(np.linspace(0, 160, height), np.linspace(0, 60, width))
    pixels = (slope[..., None] + rng.integers(0, 36, (height, width, 4))).astype(np.uint8)
    channels = {"L": 0, "RGB": slice(3), "RGBA": slice(4)}[mode]
    return Image.fromarray(np.ascontiguousarray(pixels[..., channels]), mode)


def _pictures(processor: object) -> Iterator[tuple[str, Any, Mapping[str, object]]]:
    sizes = (1, 1), (7, 5), (37, 53), (101, 67), (240, 320), (431, 259), (4, 300), (300, 11)
    for height, width in sizes:
        yield f"{height} x {width}", _noise(height, width, "RGB"), {"return_tensors": "pt"}
    yield "grey", _noise(90, 121, "L"), {"return_tensors": "pt"}
    yield "alpha", _noise(90, 121, "RGBA"), {"return_tensors": "pt"}
    yield "two", [_noise(90, 121, "RGB"), _noise(121, 90, "RGB", 1)], {"return_tensors": "pt"}


def _videos(processor: object) -> Iterator[tuple[str, Any, Mapping[str, object]]]:
    rng = np.random.default_rng(4)
    for frames, height, width in ((2, 30, 41), (5, 60, 33), (8, 190, 100)):
        video = rng.integers(0, 256, (frames, 3, height, width), np.uint8)
        yield f"{frames} x {height} x {width}", [video], {"return_tensors": "pt", "do_sample_frames": False}


def _sounds(processor: Any) -> Iterator[tuple[str, Any, Mapping[str, object]]]:
    rng = np.random.default_rng(6)
    rate = getattr(processor, "sampling_rate", 16000)

    def sound(samples: int) -> np.ndarray:
        times = np.arange(samples) / rate
        tone = 0.3 * np.sin(2 * np.pi * (200 + 300 * times) * times)
        return (tone + rng.normal(0, 0.02, samples)).astype(np.float32)

    call = {"return_tensors": "pt", "sampling_rate": rate}
    for samples in (700, 5003, 20000, 65001):
        yield f"{samples} samples", [sound(samples)], call
    yield "three", [sound(samples) for samples in (9000, 5003, 20001)], call
    yield "three, filled", [sound(samples) for samples in (9000, 5003, 20001)], {**call, "padding": True}


CASES = {"images": _pictures, "videos": _videos, "sounds": _sounds}

if __name__ == "__main__":
    main()
