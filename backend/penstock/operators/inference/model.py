"""`model`: runs a network from a file."""

from __future__ import annotations

from penstock.operators.inference._network import ARGUMENTS, INPUT, NetworkOperator, count_outputs
from penstock.operators.inference._onnx import open_network
from penstock.schema import Argument, Schema, register_operator
from penstock.schema.libraries import ONNX_RUNTIME
from penstock.schema.networks import Network


@register_operator
class Model(NetworkOperator):
    """Runs samples through a network in an ONNX file, with ONNX Runtime.

    The network's first dimension is the batch, which samples do not have: all samples of equal shapes run together, and a batch with
    different shapes takes one run for each shape. Samples that have all of the network's dimensions run one by one. The
    outputs have one sample for each input sample. How a network rounds may depend on how many samples run together.

    A sample that does not fit the network's inputs fails alone. The names of the network's inputs and outputs, and the number of inputs,
    are checked when the pipeline is built; types are checked with each batch. The network uses as many threads as the pipeline. Pipelines
    that run the same file with equal numbers of threads share one copy of the network in memory. In a saved pipeline that a server loads,
    a relative `path` starts from the folder of the pipeline's file. External weights must be in the network's folder.

    >>> text = fn.model(pages, path="detector.onnx")
    >>> boxes, scores = fn.model(images, path="yolo.onnx", output_names=["boxes", "scores"])
    """

    schema = Schema(
        name="Model",
        inputs=(INPUT,),
        variadic=True,
        arguments=(
            Argument(
                "path", "string", None, "The network's file, which ends with .onnx or .ort.", required=True, path=True
            ),
            *ARGUMENTS,
            Argument(
                "providers",
                "string[]",
                None,
                "ONNX Runtime's execution providers, the preferred one first, such as TensorrtExecutionProvider; by default "
                "CPUExecutionProvider, or on a GPU CUDAExecutionProvider, which is in the package onnxruntime-gpu.",
            ),
        ),
        outputs=count_outputs,
        needs=(ONNX_RUNTIME,),
        unswept="its network is its user's",
    )

    def connect(self, num_inputs: int, num_threads: int, device_id: int | None) -> None:
        on_gpu = None if self.device == "cpu" else device_id or 0
        self._network = open_network(self.args["path"], self.files, self.args["providers"], num_threads, on_gpu)
        self.tensors(self._network, num_inputs)

    def network(self) -> Network:
        return self._network
