"""Finds the properties of a pipeline's inputs and outputs: by its declarations, and by running it on small synthetic inputs."""

from __future__ import annotations

import functools
import io
import logging
import wave
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import NO_TYPE, UINT8, DALIDataType, numpy_dtype
from penstock.errors import OperatorError, PenstockError
from penstock.graph import OpNode
from penstock.pipeline import Pipeline
from penstock.schema import InputOperator, operator_class
from penstock.serving.faults import is_about_resources, server_cause
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorList, TensorListCPU

logger = logging.getLogger(__name__)


class TrialRunError(PenstockError):
    """The server cannot run a pipeline on any input: memory, space, a permission or a library is missing, or a library fails."""


@dataclass(frozen=True)
class TensorInfo:
    """The known properties of an input or output.

    Attributes:
        name: the node's name.
        dtype: the type of the elements; None if unknown.
        dims: the extents of a sample, -1 for variable ones; None if the rank is unknown.
        layout: the layout of a sample; an empty string if unknown.
    """

    name: str
    dtype: DALIDataType | None = None
    dims: tuple[int, ...] | None = None
    layout: str = ""


def source_steps(pipeline: Pipeline) -> Iterator[OpNode]:
    """Yield the nodes of the pipeline's input operators, in order."""
    return (op for op in pipeline.graph.operators if issubclass(operator_class(op.schema.name), InputOperator))


def streams(pipeline: Pipeline) -> bool:
    """Return whether the data of a request lasts for several runs, such as a video that is returned in sequences."""
    return bool(multi_run_sources(pipeline))


def multi_run_sources(pipeline: Pipeline) -> set[str]:
    """Return the names of the input operators whose samples last for several runs."""
    kinds = {op.name: operator_class(op.schema.name) for op in source_steps(pipeline)}
    return {name for name, kind in kinds.items() if issubclass(kind, InputOperator) and kind.multi_run}


def declared_inputs(pipeline: Pipeline) -> list[TensorInfo]:
    """Return the declared properties of the pipeline's inputs."""
    return [_declared_input(op) for op in source_steps(pipeline)]


def _declared_input(op: OpNode) -> TensorInfo:
    if "dtype" not in op.schema.all_arguments:
        # The type of this input is fixed: it is the contents of a file.
        return TensorInfo(op.name, UINT8, (-1,))
    dtype, ndim, layout = (op.arguments.get(key) for key in ("dtype", "ndim", "layout"))
    if ndim is None and layout:
        ndim = len(layout)
    dims = None if ndim is None else (-1,) * ndim
    return TensorInfo(op.name, None if dtype == NO_TYPE else dtype, dims, layout or "")


def declared_outputs(pipeline: Pipeline) -> list[TensorInfo]:
    """Return the declared properties of the pipeline's outputs."""
    return [
        TensorInfo(node.name, dtype, None if ndim is None else (-1,) * ndim)
        for node, dtype, ndim in zip(pipeline.graph.outputs, pipeline.output_dtype(), pipeline.output_ndim())
    ]


@dataclass(frozen=True)
class Trial:
    """A successful run of a pipeline on synthetic inputs.

    Attributes:
        outputs: the properties of the pipeline's outputs that the run showed.
        sample: the inputs of one sample, by name.
    """

    outputs: list[TensorInfo]
    sample: Mapping[str, TensorList]


def probe(pipeline: Pipeline, configured: Mapping[str, TensorInfo] | None = None) -> list[TensorInfo] | None:
    """Return the properties of a pipeline's outputs for synthetic inputs; None if it accepts none of these. See :func:`run_trial`."""
    trial = run_trial(pipeline, configured)
    return None if trial is None else trial.outputs


def run_trial(pipeline: Pipeline, configured: Mapping[str, TensorInfo] | None = None) -> Trial | None:
    """Run a pipeline on synthetic inputs; if it accepts none of them, log this and return None.

    The run also compiles kernels before the first request; encoded images are JPEGs, whose decoding has the most kernels. As
    it changes the pipeline's state, the pipeline must not be used for requests afterwards.

    Args:
        pipeline: the pipeline, which must never answer requests.
        configured: the configured properties of inputs, by name; used where the pipeline does not declare them.

    Raises:
        TrialRunError: the pipeline cannot run, because of a fault of the server.
    """
    inputs = [_combined(declared, (configured or {}).get(declared.name)) for declared in declared_inputs(pipeline)]
    errors: dict[str, Exception] = {}
    for kind in _kinds_for(inputs):
        try:
            sample, larger = (_synthetic_sample(inputs, kind, scale) for scale in (1, 2))
            small, large = (run_sample(pipeline, batches) for batches in (sample, larger))
        except Exception as error:
            errors[kind] = error
            continue
        outputs = [
            TensorInfo(node.name, batch.dtype, _common(_shape_of(batch), _shape_of(other)), batch.layout())
            for node, batch, other in zip(pipeline.graph.outputs, small, large)
        ]
        return Trial(outputs, sample)
    _refuse_faults_of_the_server(list(errors.values()))
    why = "; ".join(f"{kind}: {_in_one_line(error)}" if kind else _in_one_line(error) for kind, error in errors.items())
    logger.info("the trial run failed for every generated input, so nothing is known about the outputs (%s)", why)
    return None


def _kinds_for(inputs: Iterable[TensorInfo]) -> list[str]:
    """Return the kinds of files to try, in order; a single empty string if no input takes files."""
    return list(_ENCODED) if any(_is_encoded(info) for info in inputs) else [""]


def _refuse_faults_of_the_server(errors: Sequence[Exception]) -> None:
    """Raise TrialRunError if the trial runs failed because of a fault of the server, so that requests would fail, too."""
    found = [server_cause(error) for error in errors]
    for error, cause in zip(errors, found):
        # Files of a kind that the pipeline is not meant for may need a missing library, or make a library fail. So this counts only if
        # all kinds fail.
        if cause is not None and (is_about_resources(cause) or None not in found):
            raise TrialRunError(f"the model cannot answer any request here: {_in_one_line(error)}") from error


def _combined(declared: TensorInfo, configured: TensorInfo | None) -> TensorInfo:
    if configured is None:
        return declared
    dtype = configured.dtype if declared.dtype is None else declared.dtype
    fits = declared.dims is None or (configured.dims is not None and len(configured.dims) == len(declared.dims))
    return TensorInfo(declared.name, dtype, configured.dims if fits else declared.dims, declared.layout)


def _in_one_line(error: Exception) -> str:
    what = (
        f"{error.operator}: {error.reason}" if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"
    )
    return " ".join(what.split())


def _synthetic_sample(inputs: Iterable[TensorInfo], kind: str, scale: int) -> dict[str, TensorList]:
    return {info.name: TensorListCPU.of_samples([_made_up(info, kind, scale)], info.layout) for info in inputs}


def run_sample(pipeline: Pipeline, sample: Mapping[str, TensorList]) -> list[TensorList]:
    """Return the outputs of a pipeline, which must never answer requests, for one sample; raise the sample's error if it fails."""
    runner = PipelineRunner(pipeline)
    result = next(runner.stream(sample)) if streams(pipeline) else runner.run(sample, 1)
    if result.failures:
        raise result.failures[0]
    return result.outputs


def _is_encoded(info: TensorInfo) -> bool:
    return info.dtype in (None, UINT8) and info.dims in (None, (-1,))


def _made_up(info: TensorInfo, kind: str, scale: int) -> np.ndarray:
    if _is_encoded(info):
        return np.frombuffer(_ENCODED[kind](scale), np.uint8)
    extents = [
        extent if extent >= 0 else 3 if info.layout[axis : axis + 1] == "C" else 16 * scale + 8 * axis
        for axis, extent in enumerate(info.dims or ())
    ]
    return np.ones(extents, numpy_dtype(UINT8 if info.dtype is None else info.dtype))


def made_up_image(kind: str, scale: int) -> bytes:
    """Return an encoded colour image whose pixels are grey."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (320 * scale, 288 * scale + 32), (128, 128, 128)).save(buffer, kind)
    return buffer.getvalue()


def _wav(scale: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((np.sin(np.arange(16000 * scale) / 10) * 8000).astype(np.int16).tobytes())
    return buffer.getvalue()


def _clip(scale: int) -> bytes:
    """Return an encoded video of ``scale`` frames, so that the length of sequences varies with ``scale`` unless they are padded."""
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="avi") as file:
        stream = file.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64 * scale, 48 * scale, "yuvj420p"
        pixels = np.full((48 * scale, 64 * scale, 3), 128, np.uint8)
        for _ in range(scale):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    return buffer.getvalue()


_ENCODED: dict[str, Callable[[int], bytes]] = {
    "jpeg": functools.partial(made_up_image, "JPEG"),
    "png": functools.partial(made_up_image, "PNG"),
    "audio": _wav,
    "video": _clip,
}


def _shape_of(batch: TensorList) -> tuple[int, ...]:
    """Return the extents of the first sample; all are -1 if there is no sample, for example for an image without boxes."""
    return batch.shapes[0] if len(batch) else (-1,) * batch.ndim()


def _common(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    if len(small) != len(large):
        return (-1,) * len(small)
    return tuple(a if a == b else -1 for a, b in zip(small, large))
