"""Run the examples in operators' schemas, and render inputs and outputs."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from pathlib import Path

import numpy as np
from drawing import Picture, drawn
from PIL import Image
from repository import ROOT
from values import value_text

from penstock import Pipeline, fn
from penstock.schema import Schema
from penstock.schema.example_data import ExampleSamples, mosaic_of, mosaics, photo_files, photos
from penstock.schema.examples import Call, NoExampleError, shown_calls, why_unswept

_SEED = 5
_BATCH = 3
_PHOTOS = ("china.jpg", "flower.jpg")
_PHOTO_SIZE = (240, 160)
_MOST_NUMBERS = 60


@dataclass(frozen=True)
class DrawnExamples:
    """Rendered examples of an operator.

    Attributes:
        markdown: the part of the operator's page.
        files: the pictures in it, by their paths in the site.
    """

    markdown: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class _Shown:
    """One input or output of a call.

    Attributes:
        name: the input's name, or "output".
        samples: the batch's samples.
        layout, dtype: the layout and dtype of all samples.
    """

    name: str
    samples: Sequence[np.ndarray]
    layout: str
    dtype: str


def drawn_examples(schema: Schema) -> DrawnExamples:
    """Run the calls that the schema declares as shown, or the simplest of its examples."""
    try:
        calls = [] if why_unswept(schema) else shown_calls(schema)
    except NoExampleError:
        calls = []
    if not calls:
        return DrawnExamples()
    parts, files = ["## Example" + "s" * (len(calls) > 1)], {}
    for number, call in enumerate(calls):
        part, pictures = _example(schema, call, f"operators/pictures/{schema.fn_path}-{number}")
        parts.append(part)
        files |= pictures
    return DrawnExamples("\n\n".join(parts), files)


def _example(schema: Schema, call: Call, path: str) -> tuple[str, dict[str, bytes]]:
    before = [_input(schema, index, samples) for index, samples in enumerate(call.inputs)]
    after = _run(schema, call, before)
    parts = [f"{call.name}:"] if call.name else []
    parts.append(f"```python\n{_code(schema, call, before)}\n```")
    figures, files, numbers = [], {}, []
    # Operators that mix samples show the batch, others one sample.
    count = _BATCH if schema.batchwise else 1
    for number, shown in enumerate((*before, *after)):
        for index, sample in enumerate(shown.samples[:count]):
            picture = drawn(sample, shown.layout)
            caption = f"<code>{shown.name}</code>: {_described(shown, sample)}"
            if picture is None:
                numbers.append(f"{shown.name} = {_numbers(sample)}  # {_described(shown, sample)}")
            else:
                file = f"{path}-{number}-{index}.webp"
                files[file] = picture.content
                figures.append(_figure(picture, file.rpartition("/")[2], caption))
    if figures:
        parts.append('<div class="pictures">\n' + "\n".join(figures) + "\n</div>")
    if numbers:
        parts.append("```python\n" + "\n".join(numbers) + "\n```")
    return "\n\n".join(parts), files


def _input(schema: Schema, index: int, samples: ExampleSamples) -> _Shown:
    make = _PHOTOGRAPHS.get(samples.make, samples.make)
    made = [make(number) for number in range(_BATCH)]
    return _Shown(schema.input(index).name, made, samples.layout, str(made[0].dtype))


def _run(schema: Schema, call: Call, inputs: Sequence[_Shown]) -> list[_Shown]:
    on_gpu = "cpu" not in schema.devices
    with _emulated_gpu() if on_gpu else contextlib.nullcontext():
        pipeline = Pipeline(_BATCH, 2, 0 if on_gpu else None, seed=_SEED, prefetch_queue_depth=1, exec_async=False)
        with pipeline:
            nodes = [_source(shown) for shown in inputs]
            function = reduce(getattr, schema.fn_path.split("."), fn)
            outputs = function(*(node.gpu() if on_gpu else node for node in nodes), **call.arguments)
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            pipeline.set_outputs(*outputs)
        batches = [batch.as_cpu() for batch in pipeline.run()]
        names = ["output"] if len(batches) == 1 else [f"output {number}" for number in range(len(batches))]
        shown = [
            _Shown(name, [np.array(sample) for sample in batch], batch.layout(), batch.dtype.name.lower())
            for name, batch in zip(names, batches)
        ]
        pipeline.close()
    return shown


def _source(shown: _Shown) -> object:
    return fn.external_source(lambda: list(shown.samples), layout=shown.layout or None)


@contextlib.contextmanager
def _emulated_gpu() -> Iterator[None]:
    """Emulate a GPU, as the tests do, for operators without CPU code."""
    sys.path.insert(0, str(ROOT / "tests" / "kernels" / "cuda"))
    from emulation import emulated_gpu

    with tempfile.TemporaryDirectory() as folder, emulated_gpu(Path(folder)):
        yield


def _code(schema: Schema, call: Call, inputs: Sequence[_Shown]) -> str:
    given = [shown.name for shown in inputs]
    given += [f"{name}={value_text(value)}" for name, value in call.arguments.items()]
    line = f"fn.{schema.fn_path}({', '.join(given)})"
    return line if len(line) <= 100 else f"fn.{schema.fn_path}(\n" + "".join(f"    {one},\n" for one in given) + ")"


def _described(shown: _Shown, sample: np.ndarray) -> str:
    shape = "x".join(map(str, sample.shape)) or "scalar"
    return ", ".join(part for part in (shown.dtype, shape, shown.layout.strip("*")) if part)


def _numbers(sample: np.ndarray) -> str:
    text = np.array2string(
        sample, precision=3, suppress_small=True, threshold=_MOST_NUMBERS, edgeitems=2, separator=", "
    )
    return " ".join(text.split())


def _figure(picture: Picture, file: str, caption: str) -> str:
    note = f"; {picture.note}" if picture.note else ""
    image = f'<img src="pictures/{file}" width="{picture.width}" height="{picture.height}" alt="">'
    return f"<figure>{image}<figcaption>{caption}{note}</figcaption></figure>"


@cache
def _photo(number: int) -> np.ndarray:
    """Read a photograph from scikit-learn's files, without importing it, which takes seconds."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0], "datasets", "images", _PHOTOS[number % len(_PHOTOS)])
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize(_PHOTO_SIZE, Image.Resampling.LANCZOS, reducing_gap=2))


def _photo_file(number: int) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(_photo(number)).save(file, "JPEG", quality=90)
    return np.frombuffer(file.getvalue(), np.uint8)


# Photographs that replace generated pictures.
_PHOTOGRAPHS = {
    photos().make: _photo,
    photo_files().make: _photo_file,
    mosaics().make: lambda number: mosaic_of(_photo(number)),
}
