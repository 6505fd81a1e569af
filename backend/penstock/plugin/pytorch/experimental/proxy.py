"""Runs a pipeline for PyTorch's data loader: data sets call it like a transform, but it processes whole batches.

The workers of a data loader read samples and call a proxy with them. The proxy computes nothing: it returns a
reference for each sample. The worker's collation merges the references of a batch into one, and the samples are sent to the
main process, where a single pipeline processes each batch, on the GPU if the pipeline uses one.

>>> with DALIServer(pipe) as server:  # doctest: +SKIP
...     data = torchvision.datasets.ImageFolder(folder, transform=server.proxy, loader=read_file)
...     for images, labels in DataLoader(server, data, batch_size=32, num_workers=4, drop_last=True):
...         ...
"""

from __future__ import annotations

import importlib
import inspect
import queue
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import get_worker_info

from penstock.pipeline import Pipeline
from penstock.plugin.pytorch.tensors import to_torch_tensor
from penstock.runtime.sources import Source

__all__ = ["DALIOutputBatchRef", "DALIOutputSampleRef", "DALIPipelineRunRef", "DALIServer", "DataLoader"]

_POLL_SECONDS = 0.1
_Outputs = tuple[torch.Tensor, ...]


class _Requests(Protocol):
    """A queue between processes."""

    def put(self, batch: DALIPipelineRunRef) -> None: ...


@dataclass(eq=False)
class DALIPipelineRunRef:
    """A batch for the pipeline, as collected by a proxy.

    Attributes:
        batch_id: the number of the worker, and the number of the batch among the worker's batches.
        call_args: the batch's samples for each input, by the input's name.
        is_scheduled: whether the batch was sent to the pipeline.
        is_complete: whether the batch has all its samples.
    """

    batch_id: tuple[int, int]
    call_args: dict[str, list[object]] = field(default_factory=dict)
    is_scheduled: bool = False
    is_complete: bool = False


@dataclass(eq=False)
class DALIOutputSampleRef:
    """A reference to a sample of an output; collation merges the references of a batch.

    Attributes:
        proxy: the proxy that returned the reference.
        pipe_run_ref: the batch to which the sample belongs.
        output_idx: the output's index.
        sample_idx: the sample's index in the batch.
    """

    proxy: _Proxy
    pipe_run_ref: DALIPipelineRunRef
    output_idx: int
    sample_idx: int


@dataclass(eq=False)
class DALIOutputBatchRef:
    """A reference to an output for a batch, which :meth:`DALIServer.produce_data` replaces by the data."""

    pipe_run_ref: DALIPipelineRunRef
    output_idx: int


class _Proxy:
    """A callable that takes a sample for each input, and returns a tuple of references to outputs, or a single reference.

    Args:
        inputs: the names of the pipeline's inputs.
        num_outputs: the number of the pipeline's outputs.
        requests: the queue for complete batches, from which the server takes them.
        deterministic: whether the main process sends the batches to the pipeline, in the order in which it receives them.
    """

    def __init__(self, inputs: list[str], num_outputs: int, requests: _Requests, deterministic: bool) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if len(inputs) == 1 else inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in inputs])
        self._num_outputs = num_outputs
        self._requests = requests
        self._deterministic = deterministic
        self._batch: DALIPipelineRunRef | None = None
        self._made = 0

    def __call__(self, *args: object, **keywords: object) -> object:
        try:
            samples = self.__signature__.bind(*args, **keywords).arguments
        except TypeError as error:
            types_text = [type(value).__name__ for value in args]
            types_text += [f"{name}={type(value).__name__}" for name, value in keywords.items()]
            raise ValueError(
                f"Expected signature is: {self.__signature__}. Got: ({', '.join(types_text)}), error: {error}"
            ) from None
        if self._batch is None or self._batch.is_complete:
            worker = get_worker_info()
            self._batch = DALIPipelineRunRef((threading.get_ident() if worker is None else worker.id, self._made))
            self._made += 1
        batch = self._batch
        for name, value in samples.items():
            batch.call_args.setdefault(name, []).append(value)
        position = len(next(iter(batch.call_args.values()))) - 1
        references = tuple(DALIOutputSampleRef(self, batch, output, position) for output in range(self._num_outputs))
        return references if len(references) > 1 else references[0]

    def finish(self, batch: DALIPipelineRunRef) -> DALIPipelineRunRef:
        """Send a complete batch to the server, unless the main process does so; return the reference for the main process."""
        if self._deterministic:
            return batch
        if not batch.is_scheduled:
            batch.is_scheduled = True
            self._requests.put(batch)
        # Without the samples, which were sent already.
        return DALIPipelineRunRef(batch.batch_id, is_scheduled=True, is_complete=True)


def _collate_dali_output_sample_ref_fn(
    samples: Sequence[DALIOutputSampleRef], *, collate_fn_map: object = None
) -> DALIOutputBatchRef:
    """Merge references to samples into one to a batch. The name is DALI's, which a user's ``collate_fn`` calls."""
    first = samples[0]
    batch = first.pipe_run_ref
    # Set first: even if collation fails, the next sample must start a new batch.
    batch.is_complete = True
    for index, sample in enumerate(samples):
        if sample.pipe_run_ref is not batch or sample.output_idx != first.output_idx or sample.sample_idx != index:
            raise RuntimeError(
                f"A batch must hold the proxy's results for it, in order, but position {index} has {sample}"
            )
    return DALIOutputBatchRef(first.proxy.finish(batch), first.output_idx)


# PyTorch documents that users may change this mapping, although it is in a private module.
importlib.import_module("torch.utils.data._utils.collate").default_collate_fn_map[DALIOutputSampleRef] = (
    _collate_dali_output_sample_ref_fn
)


class DALIServer:
    """Runs a pipeline for proxies.

    Args:
        pipeline: the pipeline, which must not have run yet; its inputs are the external sources without callbacks.
        deterministic: whether to run batches in the order in which the loop takes them, which pipelines with random operators
            need for reproducible results; otherwise, a batch runs as soon as a worker has completed it.

    Raises:
        TypeError: ``pipeline`` is not a pipeline.
        RuntimeError: the pipeline has no inputs.
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise TypeError(f"Expected an NVIDIA DALI pipeline, got: {pipeline}")
        operators = pipeline.graph.operators
        inputs = [
            op.name for op in operators if op.schema.name == "ExternalSource" and not isinstance(op.payload, Source)
        ]
        if not inputs:
            raise RuntimeError("The provided pipeline doesn't have any inputs")
        self._pipeline = pipeline
        # A queue of the context `spawn` also works in forked workers.
        self._requests = torch.multiprocessing.get_context("spawn").Queue()
        self._results: queue.SimpleQueue[tuple[Hashable, _Outputs | Exception]] = queue.SimpleQueue()
        self._early: dict[Hashable, _Outputs | Exception] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._proxy = _Proxy(inputs, pipeline.num_outputs, self._requests, deterministic)

    @property
    def proxy(self) -> Callable[..., object]:
        """The callable for data sets. It takes a sample if the pipeline has one input, or else samples as keyword arguments."""
        return self._proxy

    # -- the pipeline's thread -----------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether batches are processed."""
        return self._thread is not None

    def start_thread(self) -> None:
        """Start processing batches; entering a ``with`` block does so, too."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._serve, name="penstock-proxy", daemon=True)
            self._thread.start()

    def stop_thread(self) -> None:
        """Stop processing batches."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def __enter__(self) -> DALIServer:
        self.start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_thread()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                batch: DALIPipelineRunRef = self._requests.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            try:
                result: _Outputs | Exception = self._run(batch.call_args)
            except Exception as error:
                result = error
            self._results.put((batch.batch_id, result))

    def _run(self, samples: Mapping[str, list[object]]) -> _Outputs:
        for name, values in samples.items():
            self._pipeline.feed_input(name, values)
        return tuple(to_torch_tensor(batch) for batch in self._pipeline.run())

    # -- the loop ------------------------------------------------------------------------------------------------

    def produce_data(self, obj: object) -> object:
        """Replace references to batches by tensors, in lists, tuples, dictionaries and attributes of objects.

        Lists, dictionaries and objects are changed in place.

        Raises:
            OperatorError: the pipeline failed on the batch.
        """
        return _Replacement(self._outputs_of).of(obj)

    def _outputs_of(self, batch: DALIPipelineRunRef) -> _Outputs:
        if not batch.is_scheduled:
            batch.is_scheduled = True
            self._requests.put(batch)
        while batch.batch_id not in self._early:
            name, result = self._results.get()
            self._early[name] = result
        found = self._early.pop(batch.batch_id)
        if isinstance(found, Exception):
            raise found
        return found


class _Replacement:
    """Replaces references within one object."""

    def __init__(self, outputs_of: Callable[[DALIPipelineRunRef], _Outputs]) -> None:
        self._outputs_of = outputs_of
        self._outputs: dict[tuple[int, int], _Outputs] = {}
        # Holds references to visited objects, so that no other object gets the same id.
        self._seen: dict[int, tuple[object, object]] = {}

    def of(self, obj: object) -> object:
        """Return the object with its references replaced."""
        if isinstance(obj, DALIOutputBatchRef):
            key = obj.pipe_run_ref.batch_id
            if key not in self._outputs:
                self._outputs[key] = self._outputs_of(obj.pipe_run_ref)
            return self._outputs[key][obj.output_idx]
        if id(obj) in self._seen:
            return self._seen[id(obj)][1]
        self._seen[id(obj)] = obj, obj
        replaced = self._inside(obj)
        self._seen[id(obj)] = obj, replaced
        return replaced

    def _inside(self, obj: object) -> Any:
        if isinstance(obj, tuple):
            items = [self.of(item) for item in obj]
            if all(new is old for new, old in zip(items, obj)):
                return obj
            return obj._make(items) if hasattr(obj, "_make") else type(obj)(items)
        container: Any = obj
        if isinstance(obj, list):
            keys: Iterable[object] = range(len(obj))
        elif isinstance(obj, dict):
            keys = list(obj)
        elif hasattr(obj, "__dict__") and not isinstance(obj, (type, torch.Tensor)):
            container, keys = vars(obj), list(vars(obj))
        else:
            return obj
        for key in keys:
            new = self.of(container[key])
            if new is not container[key]:
                container[key] = new
        return obj


class _Iterator:
    """Iterates over the batches of a data loader, with references replaced by data."""

    def __init__(self, batches: Iterator[object], server: DALIServer) -> None:
        self._batches = batches
        self._server = server

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> object:
        return self._server.produce_data(next(self._batches))


class DataLoader(TorchDataLoader[Any]):
    """PyTorch's data loader, whose batches contain the pipeline's outputs.

    Args:
        dali_server: the server whose proxy the data set calls; it is started for the first batch unless it is running.
        args, kwargs: the arguments of PyTorch's data loader.
    """

    def __init__(self, dali_server: DALIServer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dali_server = dali_server

    def __iter__(self) -> Any:
        self.dali_server.start_thread()
        return _Iterator(super().__iter__(), self.dali_server)
