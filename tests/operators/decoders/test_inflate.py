"""LZ4 blocks to arrays."""

from typing import Any

import lz4.block
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def _packed(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(lz4.block.compress(array.tobytes(), store_size=False), np.uint8)


def _run(samples: list[np.ndarray], sizes: list[list[int]] | None = None, **arguments: Any) -> Any:
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=None)
    def pipeline() -> Any:
        chunks = {}
        if sizes is not None:
            chunks["chunk_sizes"] = fn.external_source(source=lambda: [np.array(s, np.int32) for s in sizes])
        return fn.decoders.inflate(fn.external_source(source=lambda: samples), **chunks, **arguments)

    running = pipeline()
    running.build()
    (batch,) = running.run()
    return batch


def test_one_block() -> None:
    arrays = [np.arange(12, dtype=np.int16).reshape(3, 4) * i for i in range(2)]
    batch = _run([_packed(a) for a in arrays], shape=[3, 4], dtype=types.INT16, layout="HW")
    assert batch.layout() == "HW"
    for result, array in zip(batch, arrays):
        np.testing.assert_array_equal(np.array(result), array)


def test_sequences_of_blocks() -> None:
    frames = [np.full((3, 4), i, np.uint8) for i in range(3)]
    packed = [_packed(frame) for frame in frames]
    batch = _run(
        [np.concatenate(packed), packed[2]], [[p.size for p in packed], [packed[2].size]], shape=[3, 4], layout="HW"
    )
    assert batch.layout() == "FHW"
    np.testing.assert_array_equal(np.array(batch[0]), np.stack(frames))
    np.testing.assert_array_equal(np.array(batch[1]), frames[2][np.newaxis])


def test_less_than_the_shape() -> None:
    batch = _run([_packed(np.arange(4, dtype=np.uint8))], shape=[6])
    assert np.array(batch[0]).tolist() == [0, 1, 2, 3, 0, 0]


def test_offsets_alone() -> None:
    packed = [_packed(np.full(100, i, np.uint8)) for i in range(2)]
    batch = _run([np.concatenate(packed)], shape=[100], chunk_offsets=[0, packed[0].size])
    assert np.array(batch[0])[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": [5]}, "does not inflate"),
        ({"shape": [200], "check_output_size": True}, "inflates to 100 bytes"),
        ({"shape": [100], "chunk_offsets": [0, 999]}, "offset 999 while the sample size"),
        ({"shape": [100], "chunk_offsets": [1, 1]}, "would be non-positive"),
        ({"shape": [100], "chunk_sizes": [999]}, "cannot exceed the sample size"),
        ({"shape": [100], "chunk_sizes": [5, 0]}, "Got chunk size 0"),
        ({"shape": [100], "algorithm": "zip"}, "Unknown inflate algorithm"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _run([_packed(np.zeros(100, np.uint8))], **arguments)
