"""`lookup_table`: replaces integers by values from a table."""

from __future__ import annotations

import numpy as np

from penstock.data_types import BOOL, ENUM_TYPES, FLOAT, FLOAT16, FLOAT64, dtype_name, numpy_dtype
from penstock.schema import (
    Argument,
    Deprecation,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example

_LARGEST_KEY = 65535


@register_operator
class LookupTable(Operator[np.ndarray]):
    """Replaces each key by its value; elements that are not a key become ``default_value``.

    >>> fn.lookup_table(labels, keys=[1, 3], values=[10, 30], dtype=types.INT32)
    """

    schema = Schema(
        name="LookupTable",
        inputs=(Input("input", doc="Integers of any shape."),),
        arguments=(
            Argument("default_value", "float", 0.0, "Value for elements that are not a key."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output; integers are rounded and saturated."),
            Argument("keys", "int32[]", [], "The keys, from 0 to 65535; of equal ones, the last is used."),
            Argument("output_dtype", "DALIDataType", FLOAT, deprecated=Deprecation("0.24", renamed_to="dtype")),
            Argument("values", "float[]", [], "The value of each key."),
        ),
        examples=(Example({"keys": [0, 1, 200], "values": [0.5, 3.0, 7.0]}),),
        equivalents=(Equivalent("cv2.LUT", "For 8 bits; every value has an entry."),),
    )

    def setup(self) -> None:
        if self.args["dtype"] in ENUM_TYPES:
            raise RuntimeError(f"Unsupported output type: {dtype_name(self.args['dtype'])}")
        keys, values = self.args["keys"], self.args["values"]
        if len(keys) != len(values):
            raise RuntimeError(f"`keys` size should match `values` size, got {len(keys)} and {len(values)}")
        if keys and not 0 <= min(keys) <= max(keys) <= _LARGEST_KEY:
            raise RuntimeError(f"`keys` should be in the range [0, {_LARGEST_KEY}], got {min(keys)} to {max(keys)}")
        # Entries that are no key have the default value. The last entry is for elements outside of the table.
        table = np.full(max(keys, default=-1) + 2, self.args["default_value"], np.float32)
        for key, value in zip(keys, values):
            table[key] = value
        self._reals = table

    def _table(self) -> np.ndarray:
        from penstock.kernels.cpu.casting import cast

        table = np.empty(self._reals.shape, numpy_dtype(self.args["dtype"]))
        cast(self._reals, table)
        return table

    def describe(self, workspace: Workspace[np.ndarray]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype in (BOOL, FLOAT16, FLOAT, FLOAT64):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}; keys are integers")
        workspace.state = self._table()
        return [OutputSpec(self.args["dtype"], batch.layout(), batch.ndim())]

    def infer(self, sample: Sample[np.ndarray]) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample[np.ndarray]) -> None:
        from penstock.kernels.cpu.lookup import look_up

        look_up(np.ascontiguousarray(sample.inputs[0]), sample.workspace.state, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[np.ndarray]) -> None:
        from penstock.kernels.cuda.elementwise import evaluate_batch
        from penstock.kernels.cuda.launch import locate_all, upload

        samples = workspace.live
        table = upload([workspace.state])[0]
        entry = table.reshape(1)
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        last = table.size - 1
        evaluate_batch(
            f"int64 key = int64(a); return (&b)[key >= 0 && key < {last} ? key : {last}];",
            [((source, entry), target) for source, target in zip(sources, targets)],
            promoted=False,
        )
