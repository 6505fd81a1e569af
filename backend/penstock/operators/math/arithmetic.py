"""`_arithmetic_generic_op`: one arithmetic function. Python's operators and `penstock.math` create it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.elementwise import evaluate
from penstock.kernels.expression import ARITHMETIC, BITWISE, COMPARISONS, KEEPING_UNARY, Operand, parse, result_type
from penstock.operators.math._broadcasting import broadcast
from penstock.schema import Alias, Argument, Input, OutputSpec, Sample, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example
from penstock.schema.operator import Shape
from penstock.schema.plans import NoPlans
from penstock.schema.pointwise import PointwiseOperator
from penstock.tensors.batch import stacked

# Functions that round correctly or not at all, so that an element's result does not depend on how many elements are computed
# together.
_EXACT = ({*ARITHMETIC, *BITWISE, *KEEPING_UNARY} - {"pow"}) | {"fdiv", "clamp", "fabs", "floor", "ceil", "sqrt"}
_EXACT_OF_BATCHES = _EXACT.union(COMPARISONS)
# The functions of data and a constant that have kernels in chains of the compiled core.
_LAUNCHED = ("add", "sub", "mul", "fdiv")
# Batches with more elements are shared by threads instead of being computed as one array.
_MAX_ELEMENTS_TOGETHER = 1 << 13


@register_operator
class Arithmetic(PointwiseOperator[Any, None, NoPlans]):
    """Computes an elementwise function of inputs and constants, with numpy's broadcasting."""

    schema = Schema(
        name="_ArithmeticGenericOp",
        inputs=(Input("input_0", doc="Operands, of any shapes that broadcast."),),
        min_inputs=1,
        variadic=True,
        arguments=(
            Argument(
                "expression_desc",
                "string",
                doc="The function and its operands, e.g. `add(&0 $0:int32)`.",
                required=True,
            ),
            Argument(
                "integer_constants",
                "int64[]",
                None,
                "Constants of integer types, in the order of the operands' indices.",
            ),
            Argument(
                "real_constants",
                "float[]",
                None,
                "Constants of floating point types, in the order of the operands' indices.",
            ),
        ),
        hidden=True,
        aliases=(Alias("ArithmeticGenericOp", fn="_arithmetic_generic_op_1"),),
        examples=(
            Example({"expression_desc": "add(&0 $0:int32)", "integer_constants": [7]}),
            Example({"expression_desc": "mul(&0 $0:float32)", "real_constants": [0.5]}),
        ),
    )

    described_by_kind = True
    repeats_plans = True

    def setup(self) -> None:
        self.expression = parse(self.args["expression_desc"])
        self.constants = {
            operand: np.array(self._constant(operand), numpy_dtype(operand.dtype))
            for operand in self.expression.operands
            if operand.dtype is not None
        }
        operands = self.expression.operands
        self.launches = self.is_pointwise() and len(operands) == 2 and self.expression.function in _LAUNCHED

    def _constant(self, operand: Operand) -> float | int:
        values = self.args["real_constants" if operand.is_real else "integer_constants"] or []
        if operand.index >= len(values):
            raise RuntimeError(
                f"'{self.args['expression_desc']}' names constant {operand.index}, but {len(values)} are given"
            )
        return values[operand.index]

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        types = workspace.state = tuple(self._type(operand, workspace) for operand in self.expression.operands)
        dtype = result_type(self.expression.function, types)
        batches = [workspace.inputs[operand.index] for operand in self.expression.operands if operand.is_input]
        layout = functools.reduce(_common_layout, (batch.layout() for batch in batches), "")
        rank = max(batch.ndim() for batch in batches)
        # A layout with fewer dimensions than the result cannot name them all.
        return [OutputSpec(dtype, layout if len(layout) == rank else "", rank)]

    @staticmethod
    def _type(operand: Operand, workspace: Workspace) -> DALIDataType:
        return workspace.inputs[operand.index].dtype if operand.dtype is None else operand.dtype

    def infer_batch(self, samples: Samples[Any, None, NoPlans]) -> tuple[list[list[Shape]], NoPlans]:
        inputs = [operand.index for operand in self.expression.operands if operand.is_input]
        shapes, *others = map(samples.shape_list, inputs)
        if any(other != shapes for other in others):
            shapes = list(map(broadcast, zip(shapes, *others), samples.indices))
        return [shapes], NoPlans(len(samples))

    def stage_records(self, workspace: Workspace[Any, None, NoPlans]) -> StageRecords | None:
        from penstock.operators.math._arithmetic_cpu import arithmetic_stage

        first, _ = self.expression.operands
        batch, (constant,) = workspace.inputs[0], self.constants.values()
        types = numpy_dtype(batch.dtype), numpy_dtype(workspace.outputs[0].dtype)
        return arithmetic_stage(self.expression.function, constant, first.is_input, batch.shape_array(), *types)

    def compute(self, sample: Sample) -> None:
        inputs = sample.inputs
        operands = [inputs[o.index] if o.is_input else self.constants[o] for o in self.expression.operands]
        evaluate(self.expression.function, operands, sample.outputs[0])

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        if not self._compute_together(workspace):
            super().compute_samples(workspace, shapes)

    def _compute_together(self, workspace: Workspace) -> bool:
        """Compute the whole batch as one array if it is small and its samples have equal shapes; return whether that was possible."""
        output = workspace.outputs[0]
        if self.expression.function not in _EXACT_OF_BATCHES or workspace.failures or output.elements is None:
            return False
        if not 0 < output.elements.size <= _MAX_ELEMENTS_TOGETHER:
            return False
        arrays = [stacked(batch) for batch in (output, *workspace.inputs)]
        known = [_with_rank(array, output.ndim()) for array in arrays if array is not None]
        if len(known) < len(arrays):
            return False
        target, *sources = known
        operands = [
            sources[operand.index] if operand.is_input else self.constants[operand]
            for operand in self.expression.operands
        ]
        try:
            evaluate(self.expression.function, operands, target)
        except ValueError:
            # Computing sample by sample, which follows, identifies the sample at fault.
            return False
        return True

    def is_pointwise(self) -> bool:
        operands = self.expression.operands
        return self.expression.function in _EXACT and [o.index for o in operands if o.is_input] == [0]

    def compute_elements(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        operands = [source if o.is_input else self.constants[o] for o in self.expression.operands]
        evaluate(self.expression.function, operands, target)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all, upload
        from penstock.operators.math._arithmetic_cuda import compute_function

        samples = workspace.live
        inputs = [locate_all(batch, samples) for batch in workspace.inputs]
        constants = dict(zip(self.constants, upload(list(self.constants.values())) if self.constants else ()))
        columns = [inputs[o.index] if o.is_input else [constants[o]] * len(samples) for o in self.expression.operands]
        jobs = list(zip(zip(*columns), locate_all(workspace.outputs[0], samples)))
        compute_function(self.expression.function, workspace.state, workspace.outputs[0].dtype, jobs)


def _with_rank(samples: np.ndarray, rank: int) -> np.ndarray:
    """Return stacked samples, each with leading extents of 1 added up to ``rank`` dimensions."""
    if samples.ndim == 1 + rank:
        return samples
    count, *shape = samples.shape
    return samples.reshape(count, *[1] * (rank - len(shape)), *shape)


def _common_layout(one: str, other: str) -> str:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if not longer.endswith(shorter):
        raise RuntimeError(
            f"The operands have different layouts, '{one}' and '{other}'. They must be equal or one must be a suffix of the other."
        )
    return longer
