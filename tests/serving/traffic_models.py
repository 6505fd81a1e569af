"""The models of the load test: small pipelines, whose answers contain the identity of the request."""

from __future__ import annotations

from pathlib import Path

MAX_BATCH = 8
"""The largest batch size of each model."""

MAX_PIXELS = 4096
"""The largest number of pixels of an image that `fingerprint` decodes."""

CROP = 8
"""The extent of the window that `several` crops, and so the smallest extent of its images."""

FAR_CROP = 64
"""The extent of the window that `crossing` crops: larger than images of trial runs, so that a trial run fails."""

DEFAULT_FACTOR = 3
"""The factor that `chosen` uses if a request has none."""

_HEAD = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=8, num_threads=2)
"""

_PIPELINES = {
    # Takes images of any size and format, several in a request; returns their upper left corners, extents and sums.
    "fingerprint": """
def fingerprint():
    images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
    corner = fn.crop(images, crop=(16, 16), crop_pos_x=0.0, crop_pos_y=0.0, out_of_bounds_policy="pad", name="corner")
    total = fn.cast(fn.reductions.sum(images), dtype=types.INT64, name="total")
    return corner, fn.cast(images.shape(), dtype=types.INT32, name="extents"), total
""",
    # Returns whole images, which differ in size.
    "ragged": """
def ragged():
    images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
    return fn.flip(images, horizontal=1, name="mirrored")
""",
    # Takes three inputs; returns an answer for each of them, and one that is computed from two of them.
    "several": """
def several():
    images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
    window = fn.crop(images, crop=(8, 8), crop_pos_x=0.0, crop_pos_y=0.0, name="window")
    number = fn.external_source(name="number", dtype=types.INT64, ndim=0)
    text = fn.external_source(name="text", dtype=types.UINT8, ndim=1)
    total = fn.cast(fn.reductions.sum(images), dtype=types.INT64)
    return (
        window,
        fn.cast(number * 2 + 1, dtype=types.INT64, name="odd"),
        fn.copy(text, name="same"),
        fn.cast(total + number, dtype=types.INT64, name="joined"),
    )
""",
    # An operator that fails for the data of a trial run, followed by an input that the operator does not use.
    "crossing": """
def crossing():
    a = fn.external_source(name="a", dtype=types.UINT8, ndim=3, layout="HWC")
    window = fn.crop(a, crop=(64, 64), crop_pos_x=0.0, crop_pos_y=0.0, name="window")
    b = fn.external_source(name="b", dtype=types.INT64, ndim=0)
    return window, fn.copy(b, name="same")
""",
    # The two steps of the ensemble `chain`.
    "decoded": """
def decoded():
    images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
    return fn.copy(images, name="pixels")
""",
    "halved": """
def halved():
    pixels = fn.external_source(name="pixels", dtype=types.UINT8, ndim=3, layout="HWC")
    tag = fn.external_source(name="tag", dtype=types.INT64, ndim=0)
    total = fn.cast(fn.reductions.sum(pixels), dtype=types.INT64)
    return (
        fn.cast(pixels * 0.5, dtype=types.FLOAT, name="half"),
        fn.cast(total + tag, dtype=types.INT64, name="joined"),
    )
""",
    # Takes an input that requests may omit, or send as a parameter.
    "chosen": """
def chosen():
    number = fn.external_source(name="number", dtype=types.INT64, ndim=0)
    factor = fn.external_source(name="factor", dtype=types.INT64, ndim=0)
    return fn.cast(number * factor, dtype=types.INT64, name="product")
""",
    # Returns an output that is sliced along its first dimension, so that the samples of a request may differ in length.
    "cut": """
def cut():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    first = fn.slice(x, 0, fn.cast(x[0], dtype=types.INT32), axes=[0])
    return fn.reshape(first, shape=[-1, 1], name="parts"), fn.copy(x, name="same")
""",
    # Takes numbers only; runs in two processes.
    "twins": """
def twins():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    y = fn.external_source(name="y", dtype=types.INT64, ndim=0)
    return fn.cast(x * 2, dtype=types.FLOAT, name="doubled"), fn.cast(y + 1, dtype=types.INT64, name="next")
""",
}
# The same model with Triton's response cache; its requests repeat.
_PIPELINES["cached"] = _PIPELINES["twins"]
# The same model without batching: one request at a time.
_PIPELINES["unbatched"] = _PIPELINES["twins"]

_OWN_SETTINGS = {
    "fingerprint": f"""
input [ {{ name: "encoded" data_type: TYPE_STRING dims: [ 1 ] }} ]
parameters [ {{ key: "max_pixels" value: {{ string_value: "{MAX_PIXELS}" }} }} ]
""",
    "ragged": 'input [ { name: "encoded" data_type: TYPE_UINT8 dims: [ -1 ] allow_ragged_batch: true } ]\n',
    "several": """
input [
  { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "number" data_type: TYPE_INT64 dims: [ 1 ] },
  { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
]
output [
  { name: "window" data_type: TYPE_UINT8 dims: [ 8, 8, 3 ] },
  { name: "odd" data_type: TYPE_INT64 dims: [ 1 ] },
  { name: "same" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "joined" data_type: TYPE_INT64 dims: [ 1 ] }
]
""",
    "crossing": """
input [
  { name: "a" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] allow_ragged_batch: true },
  { name: "b" data_type: TYPE_INT64 dims: [ 1 ] }
]
output [
  { name: "window" data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] },
  { name: "same" data_type: TYPE_INT64 dims: [ 1 ] }
]
""",
    "decoded": """
input [ { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "pixels" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } ]
""",
    "halved": """
input [
  { name: "pixels" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] allow_ragged_batch: true },
  { name: "tag" data_type: TYPE_INT64 dims: [ 1 ] }
]
output [
  { name: "half" data_type: TYPE_FP32 dims: [ -1, -1, 3 ] },
  { name: "joined" data_type: TYPE_INT64 dims: [ 1 ] }
]
""",
    "chosen": f"""
input [ {{ name: "factor" optional: true }} ]
parameters [ {{ key: "defaults" value: {{ string_value: "{{\\"factor\\": {DEFAULT_FACTOR}}}" }} }} ]
""",
    "cut": """
input [ { name: "x" allow_ragged_batch: true } ]
parameters [ { key: "split_along_outer_axis" value: { string_value: "parts" } } ]
""",
    "unbatched": "",
    "cached": "response_cache { enable: true }\n",
    "twins": "",
}

_CHAIN = """
name: "chain"
platform: "ensemble"
max_batch_size: 8
input [
  { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "tag" data_type: TYPE_INT64 dims: [ 1 ] }
]
output [
  { name: "half" data_type: TYPE_FP32 dims: [ -1, -1, 3 ] },
  { name: "joined" data_type: TYPE_INT64 dims: [ 1 ] }
]
ensemble_scheduling {
  step [
    {
      model_name: "decoded" model_version: -1
      input_map { key: "encoded" value: "encoded" }
      output_map { key: "pixels" value: "pixels" }
    },
    {
      model_name: "halved" model_version: -1
      input_map { key: "pixels" value: "pixels" }
      input_map { key: "tag" value: "tag" }
      output_map { key: "half" value: "half" }
      output_map { key: "joined" value: "joined" }
    }
  ]
}
"""

SERVED = (*_PIPELINES, "chain")
"""The names of all models."""

CACHED = "cached"
"""The name of the model that needs a server with a response cache."""


def write_repository(folder: Path, instances: int = 1, delay_us: int = 1000, cached: bool = False) -> Path:
    """Write the models, and return the folder.

    Args:
        folder: the folder of the repository.
        instances: the number of instances of each pipeline; `twins` has one instance more.
        delay_us: how many microseconds a request waits for others to share its batch.
        cached: whether to add a model whose responses Triton caches.
    """
    for name in _PIPELINES:
        if cached or name != CACHED:
            write_model(folder, name, instances + (name == "twins"), delay_us)
    (folder / "chain" / "1").mkdir(parents=True)
    (folder / "chain" / "config.pbtxt").write_text(_CHAIN)
    return folder


def write_model(folder: Path, name: str, instances: int = 1, delay_us: int = 1000) -> None:
    """Write one of the pipelines into a repository."""
    version = folder / name / "1"
    version.mkdir(parents=True)
    (version / "pipeline.py").write_text(_HEAD + _PIPELINES[name].lstrip())
    (version.parent / "config.pbtxt").write_text(
        'backend: "penstock"\n'
        f"{_batching(name, delay_us)}\n"
        f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n" + _OWN_SETTINGS[name].lstrip()
    )


def _batching(name: str, delay_us: int) -> str:
    if name == "unbatched":
        return "max_batch_size: 0"
    return f"max_batch_size: {MAX_BATCH}\ndynamic_batching {{ max_queue_delay_microseconds: {delay_us} }}"
