"""`one_hot`: one-hot encoding of class numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import BOOL, ENUM_TYPES, FLOAT, FLOAT16, dtype_name, numpy_dtype
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, random_arrays
from penstock.schema.operator import Shape
from penstock.schema.sharing import share
from penstock.tensors.places import places_in_type, places_to_fill


@dataclass(eq=False)
class InnerVolumes(PlanColumns[int]):
    """The plans of many samples.

    Attributes:
        volumes: the number of elements in the dimensions after the new one, int64.
    """

    volumes: np.ndarray

    def __len__(self) -> int:
        return len(self.volumes)

    def row(self, number: int) -> int:
        return int(self.volumes[number])


@register_operator
class OneHot(Operator[int, int, InnerVolumes]):
    """A new dimension of ``num_classes`` entries: ``on_value`` at the class's position, ``off_value`` elsewhere.

    Samples of a single element count as scalars and become vectors, unless ``axis`` is set. For a class out of range, all entries are
    ``off_value``.
    """

    schema = Schema(
        name="OneHot",
        inputs=(
            Input(
                "input",
                doc="Class numbers, of any shape; fractions are truncated.",
                example=random_arrays((3, 4), (5, 2), (2, 1), dtype=np.int32, low=0, high=4, layout="HW"),
            ),
        ),
        arguments=(
            Argument("axis", "int32", -1, "Position of the new dimension; -1: last."),
            Argument("axis_name", "string", None, "Letter of the new dimension in the output's layout.", example="C"),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output."),
            Argument("num_classes", "int32", 0, "Extent of the new dimension.", example=5),
            Argument("off_value", "float", 0.0, "Value of the other entries, truncated to the output's type."),
            Argument("on_value", "float", 1.0, "Value at the class's position, truncated to the output's type."),
        ),
        examples=(Example({"num_classes": 5}),),
        equivalents=(
            Equivalent("torch.nn.functional.one_hot", "It refuses classes that are not there; here they give zeros."),
        ),
    )

    repeats_plans = True

    def setup(self) -> None:
        name = self.args["axis_name"]
        if name is not None and len(name) != 1:
            raise RuntimeError(f'Unsupported axis_name value. It must be a single character, got "{name}" instead.')
        if self.args["num_classes"] < 0:
            raise RuntimeError(f"`num_classes` cannot be negative: {self.args['num_classes']}")
        if self.args["dtype"] in (BOOL, FLOAT16, *ENUM_TYPES):
            raise RuntimeError(f"Unsupported output type: {dtype_name(self.args['dtype'])}")
        self._on, self._off = self._truncated("on_value"), self._truncated("off_value")
        # The kernel copies both values as unsigned integers, so that types of the same size share a kernel.
        self._bits = [value.view(f"u{value.itemsize}") for value in (self._on, self._off)]

    def _truncated(self, name: str) -> Any:
        """Return the value of an argument in the output's type. For integer types it is truncated to int32 or int64, whose upper bits
        are then dropped, as C does.
        """
        kind = numpy_dtype(self.args["dtype"])
        value = self.args[name]
        if kind.kind == "f":
            return kind.type(value)
        middle = np.iinfo(np.int32 if kind.itemsize < 4 or kind == np.int32 else np.int64)
        whole = math.trunc(value) if math.isfinite(value) else middle.min
        fits = middle.min <= whole <= middle.max
        return np.array(whole if fits else middle.min, np.int64).astype(kind)[()]

    def describe(self, workspace: Workspace[int, int, InnerVolumes]) -> list[OutputSpec]:
        batch, axis, name = workspace.inputs[0], self.args["axis"], self.args["axis_name"]
        if batch.dtype in (BOOL, FLOAT16):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        ndim = 0 if axis == -1 and all(math.prod(shape) == 1 for shape in batch.shapes) else batch.ndim()
        if not -1 <= axis <= ndim:
            raise RuntimeError(
                f"Provided axis is outside of allowed range, got: {axis}, expected to be in range: [-1, {ndim}]"
            )
        dimension = ndim if axis == -1 else axis
        workspace.state = dimension
        layout = ""
        if name is not None:
            known = batch.layout() if ndim else ""
            if len(known) != ndim:
                raise RuntimeError(
                    f"Input layout mismatch: `axis_name` needs one. Expected input layout to be of size {ndim} but instead "
                    f'got "{known}", which is of size {len(known)}'
                )
            layout = known[:dimension] + name + known[dimension:]
        return [OutputSpec(self.args["dtype"], layout, ndim + 1)]

    def infer_batch(self, samples: Samples[int, int, InnerVolumes]) -> tuple[list[list[Shape]], InnerVolumes]:
        shapes, dimension, count = samples.shape_list(), samples.state, self.args["num_classes"]
        if self.args["axis"] == -1 and dimension == 0:
            shapes = [()] * len(shapes)
        inner = np.array([math.prod(shape[dimension:]) for shape in shapes], np.int64)
        return [[(*shape[:dimension], count, *shape[dimension:]) for shape in shapes]], InnerVolumes(inner)

    def compute_samples(self, workspace: Workspace[int, int, InnerVolumes], shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.lookup import mark

        if not workspace.live_indices:
            return
        batch, (on, off), count = workspace.inputs[0], self._bits, self.args["num_classes"]
        kind = numpy_dtype(batch.dtype)
        # Fewer types of numbers need fewer kernels.
        kind = kind if kind.kind == "f" else np.dtype(np.int32)
        sources, _owner = places_in_type(batch, kind)
        addresses = workspace.of_live(sources), workspace.of_live(places_to_fill(workspace.outputs[0]))
        volumes, like = workspace.of_live(batch.sample_volumes()), kind.type(0)
        inner = workspace.plans.volumes
        share(workspace, lambda begin, end: mark(*addresses, volumes, inner, begin, end, on, off, count, like), volumes)

    def compute_batch(self, workspace: Workspace[int, int, InnerVolumes]) -> None:
        from penstock.kernels.cuda.elementwise import evaluate_batch
        from penstock.kernels.cuda.launch import locate_all, upload

        samples, dimension = workspace.live, workspace.state
        count = self.args["num_classes"]
        kind = numpy_dtype(self.args["dtype"])
        positions, values = upload([np.arange(count, dtype=np.int32), np.array([self._off, self._on], kind)])
        jobs = []
        for source, target in zip(locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)):
            shape = target.shape
            classes = source.reshape(*shape[:dimension], 1, *shape[dimension + 1 :])
            along = positions.reshape(count, *(1,) * (len(shape) - dimension - 1))
            jobs.append(((classes, along, values.reshape(1)), target))
        known = (
            "double(a) > -2147483648.0 && double(a) < 2147483648.0"
            if numpy_dtype(workspace.inputs[0].dtype).kind == "f"
            else "true"
        )
        evaluate_batch(f"return (&c)[({known} ? int32(a) : -1) == b];", jobs, promoted=False)
