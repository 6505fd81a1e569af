"""`dl_tensor_python_function`: calls a function with DLPack capsules."""

from __future__ import annotations

from typing import Any

from penstock.operators.python._calling import PythonOperator, python_schema, synchronize_stream
from penstock.schema import Argument, register_operator
from penstock.tensors.dlpack import from_dlpack, to_capsule


@register_operator
class DLTensorPythonFunction(PythonOperator):
    """Calls a Python function with DLPack capsules. It must return capsules or objects with ``__dlpack__``.

    The function must not modify its arguments. Its results are copied.
    """

    schema = python_schema(
        "DLTensorPythonFunction",
        False,
        Argument(
            "synchronize_stream",
            "bool",
            True,
            "Wait for the pipeline's GPU work before the call; False if the function uses the pipeline's stream.",
        ),
    )

    def given_value(self, sample: object) -> Any:
        return to_capsule(sample)

    def taken_value(self, result: object) -> Any:
        return from_dlpack(result, self.device == "gpu")

    def call(self, *values: object) -> Any:
        if self.device == "gpu" and self.args["synchronize_stream"]:
            synchronize_stream()
        return super().call(*values)
