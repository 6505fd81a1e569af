"""`python_function`: a function of numpy arrays, or of CuPy arrays on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.python._calling import INPUTS, PythonOperator, arguments, count_outputs
from penstock.schema import Schema, register_operator
from penstock.tensors.cuda import require_cupy


@register_operator
class PythonFunction(PythonOperator):
    """Calls a Python function with numpy arrays, or on the GPU with CuPy arrays on the pipeline's stream.

    The function must not modify its inputs. Its results are copied.
    """

    schema = Schema(
        name="PythonFunction",
        inputs=INPUTS,
        min_inputs=0,
        variadic=True,
        arguments=arguments(False),
        outputs=count_outputs,
        stateful=True,
        no_prune=True,
        unswept="its function is its user's",
    )

    def taken_value(self, result: Any) -> Any:
        kind = np.ndarray if self.device == "cpu" else require_cupy().ndarray
        if not isinstance(result, kind):
            raise TypeError(f"The function returns arrays ({kind.__module__}.ndarray), got a {type(result).__name__}")
        return result
