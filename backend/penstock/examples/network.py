"""The model folder of an ONNX network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

# Triton's names of the types in `onnx.TensorProto.DataType`.
_TRITON_TYPES = {"FLOAT": "FP32", "INT64": "INT64"}
_PYTHON_CONFIG = """# The network, run by onnxruntime in a Python model. Servers that have the ONNX Runtime backend can run it without
# Python: `--model-config-name=onnx` takes configs/onnx.pbtxt instead.
backend: "python"
{body}instance_group [ {{ kind: KIND_CPU }} ]
"""
_ONNX_CONFIG = """# The same network, run by Triton's own ONNX Runtime backend: `tritonserver --model-config-name=onnx`.
backend: "onnxruntime"
default_model_filename: "model.onnx"
{body}"""
_BODY = """max_batch_size: {max_batch}
input [ {inputs} ]
output [ {outputs} ]
dynamic_batching {{ }}
"""


def write_network(
    folder: Path, network: onnx.ModelProto, max_batch: int, labels: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write a model folder for a network. The first dimension of its inputs and outputs must be the batch.

    Args:
        folder: the model's folder.
        network: the network to run.
        max_batch: the largest number of samples that run together.
        labels: the labels of the classes, by output; only for outputs that are classes.
    """
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(network.SerializeToString())
    shutil.copyfile(Path(__file__).with_name("onnx_model.py"), version / "model.py")
    files = {output: f"{output}.txt" for output in labels or {}}
    for output, names in (labels or {}).items():
        (folder / files[output]).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    inputs, outputs = (
        ", ".join(_tensor(value, files.get(value.name)) for value in values)
        for values in (network.graph.input, network.graph.output)
    )
    body = _BODY.format(max_batch=max_batch, inputs=inputs, outputs=outputs)
    (folder / "config.pbtxt").write_text(_PYTHON_CONFIG.format(body=body))
    (folder / "configs").mkdir()
    (folder / "configs" / "onnx.pbtxt").write_text(_ONNX_CONFIG.format(body=body))


def write_model(folder: Path, configuration: Path, pipeline: Path | None = None) -> None:
    """Write a model folder from files: for a pipeline, or without ``pipeline`` for an ensemble, whose version folder must
    exist although it is empty.
    """
    version = folder / "1"
    version.mkdir(parents=True)
    shutil.copyfile(configuration, folder / "config.pbtxt")
    if pipeline is not None:
        shutil.copyfile(pipeline, version / "pipeline.py")


def _tensor(value: onnx.ValueInfoProto, labels: str | None) -> str:
    """Return a tensor's description for Triton's configuration, without the dimension of the batch."""
    from onnx import TensorProto

    tensor = value.type.tensor_type
    kind = _TRITON_TYPES[TensorProto.DataType.Name(tensor.elem_type)]
    dims = ", ".join(str(dim.dim_value) if dim.HasField("dim_value") else "-1" for dim in tensor.shape.dim[1:])
    names = f' label_filename: "{labels}"' if labels else ""
    return f'{{ name: "{value.name}" data_type: TYPE_{kind} dims: [ {dims} ]{names} }}'
