"""`python_function`: calls a function with numpy arrays or, on the GPU, CuPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.python._calling import PythonOperator, python_schema
from penstock.schema import register_operator
from penstock.tensors.cuda import require_cupy


@register_operator
class PythonFunction(PythonOperator):
    """Calls a Python function with numpy arrays or, on the GPU, with CuPy arrays; the pipeline's stream is CuPy's current one.

    The function must not modify its arguments. Its results are copied.
    """

    schema = python_schema("PythonFunction", False)

    def taken_value(self, result: object) -> Any:
        kind = np.ndarray if self.device == "cpu" else require_cupy().ndarray
        if not isinstance(result, kind):
            raise TypeError(f"The function returns arrays ({kind.__module__}.ndarray), got a {type(result).__name__}")
        return result
