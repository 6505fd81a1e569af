"""GPU pipelines that are moved to the CPU."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import DeviceError


def _picture() -> np.ndarray:
    pixels = np.random.default_rng(1).integers(0, 255, (40, 30, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _graph(on: str) -> Any:
    """Return a graph, on a GPU or on the CPU, with decoding, arithmetic, an operator with two outputs, and an argument that is computed in
    the graph.
    """
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    flipped = fn.external_source(name="flip", dtype=types.INT32, ndim=0)
    images = fn.decoders.image(encoded, device="mixed" if on == "gpu" else "cpu")
    images = fn.flip(images, horizontal=flipped) / 2
    shift = fn.random.normal(images, device=on, seed=3)
    first, second = fn.element_extract(fn.stack(images, shift), element_map=[0, 1])
    beside = flipped.gpu() + 1 if on == "gpu" else flipped + 1
    return first, fn.cast(second, dtype=types.FLOAT16, name="noise"), beside


def _outputs(pipeline: Pipeline) -> list[np.ndarray]:
    pipeline.feed_input("encoded", [_picture()] * 2)
    pipeline.feed_input("flip", [np.int32(0), np.int32(1)])
    try:
        return [np.array(sample) for output in pipeline.run() for sample in output]
    finally:
        pipeline.close()


def _defined(on: str, **settings: Any) -> Pipeline:
    return pipeline_def(_graph)(on, batch_size=2, num_threads=1, prefetch_queue_depth=1, **settings)


@pytest.mark.parametrize("saved", [None, "readable", "dali"])
def test_a_pipeline_of_the_gpu_gives_on_the_cpu_what_one_of_the_cpu_gives(saved: str | None, tmp_path: Any) -> None:
    moved = _defined("gpu", device_id=0)
    if saved == "readable":
        moved.save(str(tmp_path / "model.json"))
        moved = Pipeline.load(str(tmp_path / "model.json"))
    elif saved == "dali":
        from penstock.serialize.dali_format import from_wire

        moved = from_wire(moved.serialize(), Pipeline, {"prefetch_queue_depth": 1})
    names = [node.name for node in moved.graph.outputs]
    moved.move_to_cpu()
    assert not moved.graph.uses_gpu()
    assert [node.name for node in moved.graph.outputs] == names
    moved.build()
    ours, expected = _outputs(moved), _outputs(_defined("cpu", device_id=None))
    assert len(ours) == 6
    for a, b in zip(ours, expected):
        np.testing.assert_array_equal(a, b)


def test_what_runs_on_a_gpu_alone_is_named() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def flow() -> Any:
        frames = fn.external_source(name="frames", layout="FHWC", device="gpu")
        return fn.optical_flow(frames, name="flow")

    pipeline = flow()
    with pytest.raises(DeviceError, match=r"GPU only: `penstock\.fn\.optical_flow` \('flow'\)"):
        pipeline.move_to_cpu()
