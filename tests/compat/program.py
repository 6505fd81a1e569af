"""An unmodified DALI program that exercises most of DALI's API.

The program also runs on DALI, where its assertions hold too (debug mode only on a machine with a GPU). Each part prints ``ok``.
"""

import os
import sys
import tempfile

import numpy as np
import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import Pipeline, math, ops, pipeline_def
from nvidia.dali.backend import TensorListCPU
from nvidia.dali.data_node import DataNode
from nvidia.dali.pipeline import do_not_convert
from nvidia.dali.pipeline.experimental import pipeline_def as experimental_pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.triton import autoserialize
from nvidia.dali.tensors import TensorCPU
from nvidia.dali.types import Constant, DALIDataType, SampleInfo

SETTINGS = dict(batch_size=4, num_threads=2, device_id=None)
points = []


def point(function):
    points.append(function)
    return function


def ramp(info):
    return np.full((4, 6, 3), info.idx_in_epoch, np.uint8)


@point
def defining():
    @pipeline_def(**SETTINGS)
    def doubled(factor):
        data = fn.external_source(ramp, batch=False, layout="HWC")
        assert isinstance(data, DataNode)
        assert Pipeline.current() is not None
        return data * np.uint8(factor)

    (out,) = doubled(2, batch_size=3).run()
    assert isinstance(out, TensorListCPU)
    assert [int(out.at(i)[0, 0, 0]) for i in range(3)] == [0, 2, 4]

    class Subclass(Pipeline):
        def define_graph(self):
            return fn.random.coin_flip(seed=1)

    pipe = Subclass(**SETTINGS)
    pipe.build()
    pipe.schedule_run()
    assert len(pipe.share_outputs()[0]) == 4
    pipe.release_outputs()
    with Pipeline(**SETTINGS, prefetch_queue_depth=1) as pipe:
        pipe.set_outputs(fn.external_source(name="fed") + 1)
    assert pipe.run(fed=np.zeros((4, 2), np.float32))[0].as_array().sum() == 8


@point
def graph():
    @pipeline_def(**SETTINGS)
    def expressions():
        data = fn.external_source(ramp, batch=False, layout="HWC")
        part = data[1:3, :, 0]
        return part + 0.5, part // 2 == 1, math.sqrt(part), data.shape(), data[:, :, dali.newaxis].property("layout")

    half, equal, root, shapes, _ = expressions().run()
    assert half.dtype == DALIDataType.FLOAT
    assert half.shape()[0] == (2, 6)
    assert equal.dtype == types.BOOL
    assert [bool(equal.at(i)[0, 0]) for i in range(4)] == [False, False, True, True]
    assert abs(float(root.at(2)[0, 0]) - 2**0.5) < 1e-6
    assert shapes.at(0).tolist() == [4, 6, 3]


@point
def conditionals():
    @do_not_convert
    def plain(x):
        return x

    @pipeline_def(enable_conditionals=True, **SETTINGS)
    def chosen():
        data = fn.cast(fn.external_source(ramp, batch=False), dtype=types.INT32)
        first = fn.reductions.max(data)
        if first > 2:
            data = -data
        elif first == 1 or first == 0:
            data = plain(data + 10)
        return data

    (out,) = chosen().run()
    assert [int(out.at(i)[0, 0, 0]) for i in range(4)] == [10, 11, 2, -3]


@point
def faces():
    resize = ops.Resize(device="cpu", resize_x=3, resize_y=2)
    source = ops.ExternalSource(source=ramp, batch=False, layout="HWC")
    pipe = Pipeline(**SETTINGS)
    with pipe:
        pipe.set_outputs(resize(source()), fn.crop_mirror_normalize(source(), crop=(2, 2), mean=[1.0], std=[2.0]))
    resized, normalized = pipe.run()
    assert resized.shape()[0] == (2, 3, 3)
    assert normalized.layout() == "CHW"
    assert normalized.dtype == types.FLOAT
    assert float(normalized.at(3)[0, 0, 0]) == 1.0
    assert "crop" in (fn.crop_mirror_normalize.__doc__ or "")


@point
def sources():
    def batches(number):
        if number == 3:
            raise StopIteration
        return [np.int32([number])] * 4

    pipe = Pipeline(**SETTINGS)
    with pipe:
        pipe.set_outputs(*fn.external_source(lambda i: (batches(i), batches(i)), num_outputs=2))
    for _ in range(2):
        numbers = []
        while True:
            try:
                numbers.append(int(pipe.run()[0].at(0)[0]))
            except StopIteration:
                break
        assert numbers == [0, 1, 2]
        pipe.reset()
    assert SampleInfo(1, 2, 3, 4).idx_in_epoch == 1


def in_worker(info):
    if info.iteration == 2:
        raise StopIteration
    return np.int64([info.idx_in_epoch])


def parallel(method):
    pipe = Pipeline(**SETTINGS, py_num_workers=2, py_start_method=method)
    with pipe:
        pipe.set_outputs(fn.external_source(in_worker, batch=False, parallel=True))
    pipe.start_py_workers()
    assert pipe.run()[0].as_array().reshape(-1).tolist() == [0, 1, 2, 3]


@point
def workers():
    parallel("fork")
    parallel("spawn")


@point
def python_operators():
    pipe = Pipeline(**SETTINGS)
    with pipe:
        data = fn.external_source(ramp, batch=False, layout="HWC")
        pipe.set_outputs(
            fn.python_function(data, function=lambda image: image[::-1] + 1, output_layouts="HWC"),
            ops.DLTensorPythonFunction(function=lambda batch: batch)(data),
        )
    plus, same = pipe.run()
    assert plus.layout() == "HWC"
    assert int(plus.at(1)[0, 0, 0]) == 2
    assert int(same.at(3)[0, 0, 0]) == 3


@point
def randomness():
    @pipeline_def(**SETTINGS, seed=11)
    def drawn():
        return fn.random.uniform(range=[0.0, 10.0]), fn.random.coin_flip(), fn.random.normal(shape=(2,))

    first, second = drawn(), drawn()
    for a, b in zip(first.run(), second.run()):
        assert np.array_equal(a.as_array(), b.as_array())
    assert [round(float(x), 4) for x in drawn().run()[0].as_array()] == UNIFORM


UNIFORM = [7.2293, 6.2611, 3.0163, 3.1891]


def reading(folder, **settings):
    pipe = Pipeline(**dict(SETTINGS, **settings))
    with pipe:
        data, labels = fn.readers.file(
            file_root=folder, name="reader", random_shuffle=True, seed=5, pad_last_batch=True
        )
        pipe.set_outputs(data, labels)
    return pipe


def with_files(function):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            for number in range(10):
                os.makedirs(os.path.join(folder, str(number % 2)), exist_ok=True)
                with open(os.path.join(folder, str(number % 2), f"{number}.jpg"), "wb") as file:
                    file.write(bytes([number]))
            function(folder)

    run.__name__ = function.__name__
    return run


@point
@with_files
def checkpoints(folder):
    pipe = reading(folder, enable_checkpointing=True)
    pipe.run()
    saved = pipe.checkpoint()
    following = [pipe.run()[1].as_array().tolist() for _ in range(2)]
    restored = reading(folder, enable_checkpointing=True, checkpoint=saved)
    assert [restored.run()[1].as_array().tolist() for _ in range(2)] == following


@point
@with_files
def readers(folder):
    pipe = reading(folder)
    pipe.build()
    meta = pipe.reader_meta("reader")
    assert (meta["epoch_size"], meta["number_of_shards"], meta["pad_last_batch"]) == (10, 1, True), meta
    assert pipe.epoch_size("reader") == 10


@point
def debugging():
    @experimental_pipeline_def(debug=True, **SETTINGS)
    def stepwise():
        data = fn.random.uniform(range=[1.0, 2.0], shape=(3,))
        assert np.asarray(data.get().as_array()).min() >= 1
        return data * 2

    assert stepwise().run()[0].as_array().min() >= 2


@point
def saving():
    @autoserialize
    @pipeline_def(**SETTINGS, prefetch_queue_depth=1)
    def served():
        return fn.crop(fn.external_source(name="images", layout="HWC"), crop=(2, 2), crop_pos_x=0.0, crop_pos_y=0.0)

    images = np.arange(4 * 4 * 6 * 3, dtype=np.uint8).reshape(4, 4, 6, 3)
    data = served().serialize()
    loaded = Pipeline.deserialize(data)
    assert np.array_equal(loaded.run(images=images)[0].as_array(), images[:, :2, :2])


@point
def tensors():
    batch = TensorListCPU([np.zeros((2, 3), np.float32)] * 2, layout="HW")
    assert batch.is_dense_tensor()
    assert batch.as_tensor().layout() == "NHW"
    tensor = TensorCPU(np.arange(3, dtype=np.int16), "A")
    assert np.array_equal(np.asarray(tensor), [0, 1, 2])
    assert tensor.dtype == types.INT16
    assert LastBatchPolicy.PARTIAL.value == 2
    pipe = Pipeline(**SETTINGS)
    with pipe:
        pipe.set_outputs(Constant(np.float32([1, 2])))
    assert pipe.run()[0].as_array().shape == (4, 2)


@point
@with_files
def pytorch(folder):
    if "torch" not in sys.argv[1:]:
        return
    from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator
    from nvidia.dali.plugin.pytorch.torch_utils import feed_ndarray

    iterator = DALIClassificationIterator(
        reading(folder), reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    for _ in range(2):
        sizes = [len(batch[0]["label"]) for batch in iterator]
        assert sizes == [4, 4, 2]
        assert len(iterator) == 3
    assert DALIGenericIterator is not None
    assert feed_ndarray is not None


@point
@with_files
def jax(folder):
    if "jax" not in sys.argv[1:]:
        return
    from nvidia.dali.plugin.jax import data_iterator
    from nvidia.dali.plugin.jax.fn import jax_function

    @jax_function
    def negated(x):
        return -x

    @data_iterator(output_map=["data", "label"], reader_name="reader", auto_reset=True)
    def batches():
        data, labels = fn.readers.file(file_root=folder, name="reader", pad_last_batch=True)
        return data, negated(labels)

    iterator = batches(batch_size=5)
    assert [batch["label"].reshape(-1).tolist() for batch in iterator] == [[0] * 5, [-1] * 5]


def main():
    for function in points:
        function()
        print("ok", function.__name__)


if __name__ == "__main__":
    main()
