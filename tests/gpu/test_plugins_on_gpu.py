"""GPU batches as PyTorch tensors and JAX arrays, and Python functions that process them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tested_gpu import device

from penstock import Pipeline, fn
from penstock.plugin.epochs import LastBatchPolicy


def run(define: Callable[[Any], Any]) -> np.ndarray:
    pipe = Pipeline(3, 1, device())
    with pipe:
        data = fn.external_source(lambda _: [np.full((2, 3), k, np.float32) for k in range(3)], layout="HW")
        pipe.set_outputs(define(data.gpu()))
    return pipe.run()[0].as_cpu().as_array()


def numbered(batches: int, size: int = 1 << 18) -> Pipeline:
    pipe = Pipeline(2, 1, device())
    with pipe:
        data = fn.external_source([np.full((2, size), i, np.float32) for i in range(batches)], cycle="raise")
        pipe.set_outputs(data.gpu() * 2, data)
    return pipe


def test_torch_tensors_are_never_overwritten_while_they_are_used() -> None:
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    iterator = DALIGenericIterator(numbered(40), ["x", "host"], auto_reset=True)
    busy = torch.ones(4096, 4096, device=device())
    for _ in range(2):
        sums = []
        for batch in iterator:
            tensor = batch[0]["x"]
            assert tensor.is_cuda
            assert not batch[0]["host"].is_cuda
            # Keep the stream busy, so that the tensor is read long after Python has released it.
            busy = busy @ busy * 0 + 1
            sums.append(tensor.mean())
            del tensor, batch
        assert [float(value) for value in sums] == [2.0 * i for i in range(40)]


def test_batches_are_prepared_while_torch_computes() -> None:
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    pipe = numbered(10)
    iterator = DALIGenericIterator(pipe, ["x", "host"])
    with torch.cuda.device(device()):
        first = next(iterator)[0]["x"]
        first.mean()  # the first call loads the kernel, which waits for earlier kernels
        torch.cuda._sleep(1 << 30)  # half a second
        computed = torch.cuda.current_stream().record_event()
        mean = first.mean()
        del first
        second = next(iterator)[0]["x"]
        pipe.output_stream().synchronize()
        assert not computed.query()
        assert float(mean) == 0
        assert float(second.mean()) == 2


def test_memory_that_torch_is_late_to_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator, tensors

    monkeypatch.setattr(tensors, "_MAX_RETAINED_BYTES", 3 << 20)
    iterator = DALIGenericIterator(numbered(40), ["x", "host"])
    with torch.cuda.device(device()):
        torch.cuda._sleep(1 << 28)
        means = []
        for batch in iterator:
            means.append(batch[0]["x"].mean())
            assert iterator._lender.bytes <= 3 << 20
            del batch
        assert [float(mean) for mean in means] == [2.0 * i for i in range(40)]


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_torch_partial_batches_and_copies() -> None:
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator, feed_ndarray, to_torch_tensor

    iterator = DALIGenericIterator(numbered(4, 5), ["x", "y"], size=3, last_batch_policy=LastBatchPolicy.PARTIAL)
    assert [len(batch[0]["x"]) for batch in iterator] == [2, 1]
    (batch, _) = numbered(2, 5).run()
    assert to_torch_tensor(batch).shape == (2, 5)
    target = torch.full((2, 5), 7.0, device=device())
    assert float(feed_ndarray(batch, target, torch.cuda.current_stream(device())).sum()) == 0


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    from penstock.plugin.jax import DALIGenericIterator
    from penstock.plugin.jax.fn import jax_function

    batches = list(DALIGenericIterator(numbered(10), ["x", "host"]))
    assert [float(batch["x"].mean()) for batch in batches] == [2.0 * i for i in range(10)]
    assert next(iter(batches[0]["x"].devices())).platform == "gpu"
    result = run(jax_function(jax.jit(lambda x: x + 1)))
    assert result[:, 0, 0].tolist() == [1, 2, 3]


def test_functions_of_cupy_arrays_and_capsules() -> None:
    assert run(lambda x: fn.python_function(x, function=lambda a: a.T * 2))[:, 0, 0].tolist() == [0, 2, 4]
    assert run(lambda x: fn.dl_tensor_python_function(x, function=lambda capsules: capsules))[:, 0, 0].tolist() == [
        0,
        1,
        2,
    ]
    with pytest.raises(RuntimeError, match="cupy"):
        run(lambda x: fn.python_function(x, function=lambda a: a.get()))


def test_functions_of_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    result = run(lambda x: fn.torch_python_function(x, function=lambda a: torch.relu(a - 1)))
    assert result[:, 0, 0].tolist() == [0, 0, 1]
    with pytest.raises(RuntimeError, match="cpu"):
        run(lambda x: fn.torch_python_function(x, function=lambda a: a.cpu()))


def test_functions_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba.cuda")
    # The CUDA target of Numba 0.68 still uses this name, which NumPy 2.5 has removed.
    monkeypatch.setattr(np, "row_stack", np.vstack, raising=False)
    from numba import cuda

    from penstock import types
    from penstock.plugin.numba.fn import numba_function

    def doubled(out: Any, value: Any) -> None:
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = value[i, j] * 2

    kinds = dict(out_types=types.FLOAT, in_types=types.FLOAT, outs_ndim=2, ins_ndim=2)
    # With fewer blocks than this, Numba warns.
    result = run(lambda x: numba_function(x, run_fn=doubled, blocks=[32, 32, 1], threads_per_block=[8, 8, 1], **kinds))
    assert result[:, 1, 2].tolist() == [0, 2, 4]
