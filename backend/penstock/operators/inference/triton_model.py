"""`triton_model`: runs another model of the server that runs the pipeline."""

from __future__ import annotations

from collections.abc import Callable

from penstock.operators.inference._network import ARGUMENTS, INPUT, NetworkOperator, count_outputs
from penstock.schema import Argument, Schema, register_operator
from penstock.schema.networks import Network

FindModel = Callable[[str, int, float], Network]
"""A function that finds a model of the server. Its arguments: the model's name, its version (-1: the newest), and the greatest number of
seconds that a call may take (0: no limit).
"""
_find_model: FindModel | None = None


def serve_models(find: FindModel | None) -> None:
    """Set the function that finds models of the server that runs in this process; None: there is no server."""
    global _find_model
    _find_model = find


@register_operator
class TritonModel(NetworkOperator):
    """Runs samples through another model of the same Triton server. The call is made in Triton's process: without HTTP, gRPC or a copy of
    the inputs.

    If the model's `max_batch_size` is not 0, samples lack the batch dimension: samples of equal shapes form one request, with at most as
    many samples as the `max_batch_size` of the model and of this operator allow. Other models get a request for each sample. The model's
    queue, instances, statistics and cache are used as for any request. Types are checked with each batch. Strings are UINT8: the bytes of
    the string where the model's dims are [1], and otherwise a row of bytes for each string, padded with zeros. A sample that fails in the
    other model fails alone.

    The other model may be loaded later than this one, but must be ready when a request arrives. A model cannot call itself, and models
    must not call each other in a circle, as each would wait for the other. Saved pipelines can call only models that the
    server allows (`penstock serve --allow-model`). The operator requires a server whose models run in Triton's process, the
    default of `penstock serve`.

    >>> boxes = fn.triton_model(images, model="detector")
    """

    schema = Schema(
        name="TritonModel",
        devices=("cpu",),
        inputs=(INPUT,),
        variadic=True,
        arguments=(
            Argument("model", "string", None, "The name of the model.", required=True),
            Argument("version", "int64", -1, "The model's version; -1: the newest that is loaded."),
            Argument(
                "timeout_seconds",
                "float",
                0.0,
                "How long a call of the model may take before it is cancelled and its samples fail; 0: as long as a client waits.",
            ),
            *ARGUMENTS,
        ),
        outputs=count_outputs,
        unswept="it needs a server",
    )

    def setup(self) -> None:
        super().setup()
        if not self.args["timeout_seconds"] >= 0:
            raise ValueError(f"`timeout_seconds` must be 0 or more. Got: {self.args['timeout_seconds']:g}")

    def network(self) -> Network:
        if _find_model is None:
            raise RuntimeError(
                f"The model '{self.args['model']}' can be called only by a pipeline that Triton runs in its own process"
            )
        return _find_model(self.args["model"], self.args["version"], self.args["timeout_seconds"])
