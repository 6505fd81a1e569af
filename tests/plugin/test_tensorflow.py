"""Pipelines as TensorFlow data sets."""

from __future__ import annotations

import gc
import importlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from penstock import compat, fn, pipeline_def, types
from penstock.plugin.tf import (
    DALIDataset,
    DALIIterator,
    DALIRawIterator,
    dataset_compatible_tensorflow,
    dataset_distributed_compatible_tensorflow,
    dataset_inputs_compatible_tensorflow,
    dataset_options,
    datasets,
    experimental,
    serialize_pipeline,
)

# TensorFlow's libraries cause deprecation warnings from Python's own modules.
pytestmark = [
    pytest.mark.filterwarnings("default::DeprecationWarning"),
    pytest.mark.filterwarnings("default::ResourceWarning"),
]

COUNT = 10


@pytest.fixture
def files(tmp_path: Path) -> str:
    for number in range(COUNT):
        (tmp_path / str(number % 2)).mkdir(exist_ok=True)
        Image.new("RGB", (8 + number, 6), (number, 0, 0)).save(tmp_path / str(number % 2) / f"{number}.png")
    return str(tmp_path)


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def images(root: str, shuffle: bool = False) -> Any:
    encoded, label = fn.readers.file(file_root=root, random_shuffle=shuffle, seed=5, name="files")
    return fn.resize(fn.decoders.image(encoded), size=(4, 4)), label


def taken(dataset: tf.data.Dataset, count: int) -> list[tuple[np.ndarray, ...]]:
    return [tuple(tensor.numpy() for tensor in element) for element in dataset.take(count)]


@pytest.mark.parametrize("batch_size", [1, 3, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_elements_are_the_pipelines_batches(files: str, batch_size: int, shuffle: bool) -> None:
    pipeline = images(files, shuffle)
    dataset = DALIDataset(pipeline, (tf.uint8, tf.int32), batch_size=batch_size, num_threads=2, device_id=None)
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == (tf.TensorSpec(None, tf.uint8), tf.TensorSpec(None, tf.int32))
    with images(files, shuffle, batch_size=batch_size) as reference:
        for element in taken(dataset, 3 * COUNT // batch_size):
            for received, expected in zip(element, reference.run(), strict=True):
                np.testing.assert_array_equal(received, expected.as_array())


def test_each_iteration_begins_anew(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), batch_size=4, device_id=None)
    first = [label.ravel().tolist() for _, label in taken(dataset, 2)]
    one, other = iter(dataset), iter(dataset)
    for labels in first:
        for iterator in (one, other):
            assert next(iterator)[1].numpy().ravel().tolist() == labels


def test_tensors_that_are_kept_stay_as_they_are(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), batch_size=2, device_id=None)
    kept = [pixels for pixels, _ in dataset.take(50)]
    order = [number for folder in range(2) for number in range(folder, COUNT, 2)]
    for index, pixels in enumerate(kept):
        expected = [order[(2 * index + place) % COUNT] for place in range(2)]
        assert pixels.numpy()[:, 0, 0, 0].tolist() == expected


def test_host_memory_is_taken_as_it_is() -> None:
    places = []

    @pipeline_def(batch_size=8, num_threads=1)
    def ramp() -> Any:
        return fn.cast(fn.external_source(name="x", dtype=types.UINT8, ndim=1) + 1, dtype=types.UINT8)

    source = tf.data.Dataset.from_tensors(np.arange(4096, dtype=np.uint8)).repeat()
    declared = datasets.as_declared

    def noted(*arguments: Any) -> np.ndarray:
        array = declared(*arguments)
        places.append(array.ctypes.data)
        return array

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "as_declared", noted)
        dataset = experimental.DALIDatasetWithInputs(
            ramp(), tf.uint8, input_datasets={"x": source}, batch_size=8, device_id=None
        )
        received = [np.frombuffer(memoryview(element[0]), np.uint8).ctypes.data for element in dataset.take(3)]
    assert received == places[:3]


def test_a_model_trains(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), ((4, 4, 4, 3), (4,)), batch_size=4, device_id=None)
    model = tf.keras.Sequential(
        [tf.keras.layers.Rescaling(0.1), tf.keras.layers.Flatten(), tf.keras.layers.Dense(2, activation="softmax")]
    )
    model.compile(loss="sparse_categorical_crossentropy")
    history = model.fit(dataset, steps_per_epoch=5, epochs=2, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_labels_lose_their_dimension_of_one(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), ((None, 4, 4, 3), (None,)), batch_size=4, device_id=None)
    assert [tensor.shape for tensor in next(iter(dataset))] == [(4, 4, 4, 3), (4,)]
    alone = DALIDataset(images(files), (tf.uint8, tf.int32), ((4, 4, 3), ()), device_id=None)
    assert [tensor.shape for tensor in next(iter(alone))] == [(4, 4, 3), ()]


@pytest.mark.parametrize(
    ("dtypes", "shapes", "message"),
    [
        ((tf.float32, tf.int32), None, "Output 0 is of uint8, but `output_dtypes` says float32"),
        ((tf.uint8, tf.int32), ((4, 5, 4, 3), None), r"Output 0 has the shape \(4, 4, 4, 3\), but"),
        ((tf.uint8, tf.int32), (None, (4, 1, 1)), r"Output 1 has the shape \(4, 1\), but"),
    ],
)
def test_outputs_that_are_not_as_declared(files: str, dtypes: Any, shapes: Any, message: str) -> None:
    dataset = DALIDataset(images(files), dtypes, shapes, batch_size=4, device_id=None)
    with pytest.raises(tf.errors.OpError, match=message):
        next(iter(dataset))


def test_samples_that_differ_in_shape(files: str) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def decoded() -> Any:
        return fn.decoders.image(fn.readers.file(file_root=files)[0])

    with pytest.raises(tf.errors.OpError, match=r"differ in shape.*resize, crop or pad"):
        next(iter(DALIDataset(decoded(), tf.uint8, batch_size=4, device_id=None)))
    # These images differ in size, which is possible only because each batch contains one sample.
    shapes = [element[0].shape for element in DALIDataset(decoded(), tf.uint8, device_id=None).take(3)]
    assert shapes == [(1, 6, 8, 3), (1, 6, 10, 3), (1, 6, 12, 3)]


def test_damaged_samples_are_skipped(files: str) -> None:
    (Path(files) / "0" / "0.png").write_bytes(b"no image")
    pipeline = images(files, on_error="skip")
    dataset = DALIDataset(pipeline, (tf.uint8, tf.int32), batch_size=5, device_id=None)
    assert [len(label) for _, label in taken(dataset, 2)] == [4, 5]


@pipeline_def(batch_size=2, num_threads=1)
def sums() -> Any:
    return fn.external_source(name="a") + fn.external_source(name="b", layout="HW")


def numbers(count: int, shape: tuple[int, ...]) -> tf.data.Dataset:
    return tf.data.Dataset.range(count).map(lambda number: tf.fill(shape, tf.cast(number, tf.int32)))


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_inputs_by_samples_and_by_batches(prefetch: int) -> None:
    inputs = {"a": numbers(7, (2, 3)), "b": experimental.Input(numbers(9, (2, 2, 3)), layout="HW", batch=True)}
    dataset = experimental.DALIDatasetWithInputs(
        sums(), tf.int32, input_datasets=inputs, batch_size=2, device_id=None, prefetch_queue_depth=prefetch
    )
    for _ in range(2):
        # The source's seven samples make three batches.
        received = [element[0][:, 0, 0].tolist() for element in taken(dataset, 100)]
        assert received == [[0, 1], [3, 4], [6, 7]]


def test_encoded_images_may_be_strings() -> None:
    def png(number: int) -> bytes:
        file = io.BytesIO()
        Image.new("RGB", (4, 4), (number, 0, 0)).save(file, "PNG")
        return file.getvalue()

    @pipeline_def(batch_size=2, num_threads=1)
    def decoded() -> Any:
        return fn.decoders.image(fn.external_source(name="encoded"))

    strings = tf.data.Dataset.from_tensor_slices([png(number) for number in range(4)])
    dataset = experimental.DALIDatasetWithInputs(
        decoded(), tf.uint8, input_datasets={"encoded": strings}, batch_size=2, device_id=None
    )
    assert [element[0][:, 0, 0, 0].tolist() for element in taken(dataset, 9)] == [[0, 1], [2, 3]]


def generated() -> Iterator[np.ndarray]:
    for number in range(5):
        yield np.full((2, 3), number, np.int32)


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (generated, {}, [0, 1, 2, 3, 4]),
        (generated, {"cycle": "raise"}, [0, 1, 2, 3, 4]),
        (generated, {"cycle": True}, [0, 1, 2, 3, 4, 0, 1]),
        (lambda number: np.full((2, 3), number, np.int32), {}, [0, 1, 2, 3, 4, 5, 6]),
        (lambda info: np.full(3, info.iteration, np.int32), {"batch": False}, [0, 1, 2, 3, 4, 5, 6]),
        (lambda info: np.full(3, info.iteration, np.int32), {"batch": False, "parallel": True}, [0, 1, 2, 3, 4, 5, 6]),
    ],
    ids=["generator", "raise", "cycle", "batches", "samples", "parallel"],
)
def test_sources_of_python(source: Any, options: dict[str, Any], expected: list[int]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def doubled() -> Any:
        return 2 * fn.external_source(source, **options)

    dataset = experimental.DALIDatasetWithInputs(doubled(), tf.int32, batch_size=2, device_id=None)
    for _ in range(2):
        assert [int(element[0][0, 0]) for element in taken(dataset, 7)] == [2 * number for number in expected]


def test_sources_of_several_outputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pairs() -> Any:
        one, other = fn.external_source(
            lambda info: (np.int32([info.idx_in_epoch]), np.int32([-1])), num_outputs=2, batch=False
        )
        return one, other

    dataset = experimental.DALIDatasetWithInputs(pairs(), (tf.int32, tf.int32), batch_size=2, device_id=None)
    assert [(one.ravel().tolist(), other.ravel().tolist()) for one, other in taken(dataset, 2)] == [
        ([0, 1], [-1, -1]),
        ([2, 3], [-1, -1]),
    ]


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"a": tf.data.Dataset.range(3)}, ValueError, r"not assigned any inputs. Nodes without inputs: \['b'\]"),
        ({"a": 1, "b": 2}, TypeError, "must be a dictionary that maps input names"),
        ([1], TypeError, "must be a dictionary that maps input names"),
        ({"c": tf.data.Dataset.range(3)}, ValueError, "Did not find an External Source placeholder node with name='c'"),
    ],
)
def test_inputs_that_do_not_fit(inputs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        experimental.DALIDatasetWithInputs(sums(), tf.int32, input_datasets=inputs, device_id=None)


def test_a_source_is_not_fed_twice() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def fed() -> Any:
        return fn.external_source(generated, name="a")

    with pytest.raises(ValueError, match="Double specification"):
        experimental.DALIDatasetWithInputs(fed(), tf.int32, input_datasets={"a": numbers(3, (3,))}, device_id=None)
    with pytest.raises(ValueError, match="containing External Source operator nodes"):
        DALIDataset(fed(), tf.int32, device_id=None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'input_datasets'"):
        DALIDataset(fed(), tf.int32, input_datasets={})
    with pytest.raises(TypeError, match=r"must be instances of type `tf\.data\.Dataset`"):
        experimental.Input([1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"output_dtypes": [tf.uint8, tf.int32]}, TypeError, "single tf.DType value or a tuple"),
        ({}, TypeError, "single tf.DType value or a tuple"),
        ({"output_dtypes": tf.uint8}, ValueError, "has 2 outputs, but `output_dtypes` has 1"),
        ({"output_dtypes": (tf.uint8,) * 2, "output_shapes": (None,)}, ValueError, "`output_shapes` has 1"),
        ({"output_dtypes": (tf.uint8,) * 2, "dtypes": (tf.uint8,) * 2}, ValueError, "deprecated in favor of"),
    ],
)
def test_wrong_declarations(files: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DALIDataset(images(files), **arguments, device_id=None)


def test_deprecated_names(files: str) -> None:
    with pytest.warns(Warning, match="Please use `output_"):
        dataset = DALIDataset(
            images(files), dtypes=[tf.uint8, tf.int32], shapes=[None, (4, 1)], batch_size=4, device_id=None
        )
    assert next(iter(dataset))[1].shape == (4, 1)


def test_functions_of_python_cannot_be_copied() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def negated() -> Any:
        return fn.python_function(fn.random.uniform(range=[0, 1]), function=lambda value: -value)

    with pytest.raises(RuntimeError, match="functions of Python, cannot be used in data sets of TensorFlow"):
        serialize_pipeline(negated())
    with pytest.raises(RuntimeError, match="functions of Python"):
        DALIDataset(negated(), tf.float32, device_id=None)


def own_threads() -> set[threading.Thread]:
    """Return the threads that Python started. Python lists TensorFlow's threads as dummies, which are left out."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("Dummy")}


def test_an_abandoned_iteration_ends_its_pipeline(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), batch_size=4, device_id=None)
    before = own_threads()
    iterators = [iter(dataset) for _ in range(3)]
    for iterator in iterators:
        next(iterator)
    started = own_threads() - before
    assert started
    del iterator, iterators
    gc.collect()
    for thread in started:
        thread.join(30)
    assert not any(thread.is_alive() for thread in started)


_ENDING = """
import numpy as np, tensorflow as tf
from penstock import fn, pipeline_def
from penstock.plugin.tf import DALIDataset

@pipeline_def(batch_size=64, num_threads=2, device_id=None)
def noise():
    return fn.random.normal(shape=[100_000])

iterators = [iter(DALIDataset(noise(), tf.float32, batch_size=64, device_id=None)) for _ in range(3)]
print(sum(next(iterator)[0].shape[0] for iterator in iterators), flush=True)
"""


@pytest.mark.exhaustive
def test_a_process_ends_in_the_midst_of_iterations() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", _ENDING], env=environment, capture_output=True, text=True, timeout=100
    )
    assert (ended.returncode, ended.stdout) == (0, "192\n")


def test_data_sets_after_it(files: str) -> None:
    dataset = DALIDataset(images(files), (tf.uint8, tf.int32), batch_size=2, device_id=None)
    labels = dataset.map(lambda pixels, label: label).unbatch().with_options(dataset_options()).take(COUNT)
    assert [int(label[0]) for label in labels] == [0] * 5 + [1] * 5
    pairs = tf.data.Dataset.zip((dataset, tf.data.Dataset.range(3)))
    assert [int(number) for _, number in pairs] == [0, 1, 2]


def test_the_operation_from_before_data_sets(files: str) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        pixels, label = DALIIterator()(
            images(files), shapes=[(4, 4, 4, 3), (4,)], dtypes=[tf.uint8, tf.int32], device_id=None
        )
        assert pixels.shape == (4, 4, 4, 3)
        assert [session.run(label).tolist() for _ in range(2)] == [[0, 0, 0, 0], [0, 1, 1, 1]]


def test_sparse_tensors(files: str) -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def ragged() -> Any:
        encoded, _ = fn.readers.file(file_root=files)
        return fn.decoders.image(encoded)[:, :, 0]

    (sparse,) = DALIRawIterator()(
        serialized_pipeline=ragged().serialize(), sparse=[True], dtypes=[tf.uint8], batch_size=3, device_id=None
    )
    dense = tf.sparse.to_dense(sparse).numpy()
    assert dense.shape == (3, 6, 12)
    for place, (number, width) in enumerate([(0, 8), (2, 10), (4, 12)]):
        assert (dense[place, :, :width] == number).all()
        assert (dense[place, :, width:] == 0).all()
    with pytest.raises(ValueError, match="shapes and batch_size arguments cannot be empty"):
        DALIRawIterator()(ragged(), dtypes=[tf.uint8])
    with pytest.raises(ValueError, match="is needed"):
        DALIRawIterator()(dtypes=[tf.uint8], batch_size=3)


def test_under_dalis_name(files: str) -> None:
    assert dataset_compatible_tensorflow()
    assert dataset_inputs_compatible_tensorflow()
    assert dataset_distributed_compatible_tensorflow()
    compat.install()
    try:
        plugin = importlib.import_module("nvidia.dali.plugin.tf")
        assert plugin.DALIDataset is DALIDataset
        assert plugin.experimental.Input is experimental.Input
        assert importlib.import_module("nvidia.dali.plugin.tf.experimental").Input is experimental.Input
    finally:
        compat.uninstall()
