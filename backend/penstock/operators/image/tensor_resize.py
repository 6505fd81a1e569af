"""`tensor_resize`: resizes any dimensions of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from penstock.data_types import INTERP_LINEAR
from penstock.kernels.axes import resolve_axes
from penstock.kernels.resize_shapes import MODES, ROUNDINGS, plan_axes
from penstock.operators.image._resizing import ResizingOperator
from penstock.schema import Alias, Argument, Equivalent, Input, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, on_photo

_MAX_DIMENSIONS = 3


@dataclass
class _NamedWorkspace(Workspace):
    """The workspace of a run on data whose resized dimensions are labelled D, H and W.

    Attributes:
        named: the dimensions of the original data that the user selected, in the user's order.
        first: the first dimension to resize.
        lone: whether no other dimension is resized; then, a dimension of extent 1 was inserted before ``first``.
    """

    named: tuple[int, ...] = ()
    first: int = 0
    lone: bool = False


@register_operator
class TensorResize(ResizingOperator):
    """Resamples selected dimensions of tensors with a separable filter; layouts don't matter.

    At most three adjacent dimensions can be resized, including unchanged ones between them.

    >>> fn.tensor_resize(volumes, sizes=[64, 128], axes=[1, 2])
    """

    schema = Schema(
        name="TensorResize",
        inputs=(Input("input", doc="Data of uint8, int16, uint16 or float, of any shape."),),
        arguments=(
            Argument(
                "alignment",
                "float[]",
                [0.5],
                "The fixed point of each region when `subpixel_scale` adjusts it: 0 start, 1 end.",
                tensor=True,
                uniform=True,
                tensor_example=[0.375, 0.375, 0.375],
            ),
            Argument("antialias", "bool", True, "Widen the filter when an axis shrinks, to prevent aliasing."),
            Argument("axes", "int32[]", None, "Indices of the dimensions to resize; by default all."),
            Argument("axis_names", "layout", None, "Letters of the dimensions to resize, as in the layout."),
            Argument("dtype", "DALIDataType", None, "Type of the output: FLOAT or, by default, that of the input."),
            Argument(
                "interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking.", tensor=True
            ),
            Argument("mag_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that grow.", tensor=True),
            Argument("max_size", "float[]", None, "The maximum of each axis: one value, or one for each axis."),
            Argument("min_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that shrink.", tensor=True),
            Argument("minibatch_size", "int32", 32, "Accepted for compatibility."),
            Argument(
                "mode",
                "string",
                "default",
                "How sizes of 0 are derived: `default` (same scale as the others), `stretch` (unchanged), "
                "`not_larger` (fits inside), `not_smaller` (covers).",
                choices=("default", "stretch", "not_larger", "not_smaller"),
            ),
            Argument(
                "roi_end",
                "float[]",
                None,
                "End of the region to resize; before the start: mirrored.",
                tensor=True,
                uniform=True,
            ),
            Argument("roi_relative", "bool", False, "The region is given in fractions of the input's extents."),
            Argument(
                "roi_start",
                "float[]",
                None,
                "Start of the region to resize, in the order of the axes.",
                tensor=True,
                uniform=True,
            ),
            Argument(
                "scales",
                "float[]",
                None,
                "Output extents over input extents: one, or one for each axis.",
                tensor=True,
                uniform=True,
            ),
            Argument(
                "size_rounding",
                "string",
                "round",
                "How extents are rounded: `round`, `truncate` or `ceil`.",
                choices=("round", "truncate", "ceil"),
            ),
            Argument(
                "sizes",
                "float[]",
                None,
                "Output extents: one, or one for each axis; negative: mirrored.",
                tensor=True,
                uniform=True,
            ),
            Argument(
                "subpixel_scale",
                "bool",
                True,
                "When an extent is rounded, adjust the region so that the true scale is kept.",
            ),
            Argument("temp_buffer_hint", "int32", 0, "Accepted for compatibility."),
        ),
        aliases=(Alias("experimental__TensorResize", deprecated_since="2.0"),),
        examples=(
            Example({"sizes": [20.0, 14.0, 3.0]}),
            Example({"scales": [1.5, 0.7, 1.0]}),
            Example({"sizes": [20.0, 14.0], "axes": [0, 1]}),
            Example({"sizes": [14.0], "axis_names": "W", "max_size": [10.0]}),
            Example({"sizes": [20.0, 14.0], "axes": [0, 1], "roi_start": [2.0, 3.0], "roi_end": [12.0, 14.0]}),
            Example(
                {
                    "sizes": [20.0, 14.0],
                    "axes": [0, 1],
                    "roi_start": [0.1, 0.2],
                    "roi_end": [0.7, 0.9],
                    "roi_relative": True,
                }
            ),
        ),
        shown=(on_photo(scales=[0.5, 1.0], axis_names="HW"),),
        exempt={
            "batch": "as in DALI, the whole batch decides which dimensions are resampled, and so how halves are rounded"
        },
        equivalents=(
            Equivalent("scipy.ndimage.zoom", "It interpolates with splines and widens no filter when it shrinks."),
        ),
    )

    # The shapes of a batch decide which dimensions are resized.
    described_by_kind = False
    repeats_plans = False

    def setup(self) -> None:
        if self.given("sizes") == self.given("scales"):
            raise RuntimeError("Need one of ``scales`` or ``sizes``, but not both")
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("Arguments `axes` and `axis_names` are mutually exclusive")
        if self.given("roi_start") != self.given("roi_end"):
            raise RuntimeError("``roi_start`` and ``roi_end`` must be specified together")
        if self.args["mode"] not in MODES:
            raise RuntimeError(f"Invalid resize mode: {self.args['mode']}. Use one of {', '.join(MODES)}.")
        if self.given("scales") and self.args["mode"] in ("not_larger", "not_smaller"):
            raise RuntimeError(f"`scales` cannot be given with the mode '{self.args['mode']}'")
        if self.args["size_rounding"] not in ROUNDINGS:
            raise RuntimeError(f"Unknown rounding '{self.args['size_rounding']}': use one of {', '.join(ROUNDINGS)}")

    def run_batch(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        names = self.args["axis_names"]
        axes = [] if names == "" else resolve_axes(self.args["axes"], names, batch.layout(), batch.ndim())
        named = list(range(batch.ndim())) if axes is None else axes
        if not batch.ndim():
            raise RuntimeError("There is no dimension to resize")
        first, count = self._changed_dimensions(workspace, named)
        if count > _MAX_DIMENSIONS:
            raise ValueError(
                f"At most {_MAX_DIMENSIONS} adjacent dimensions can be resized, including unchanged ones between them, got {count}"
            )
        # The only dimension of a vector becomes the width of an image one pixel high.
        lone = count == 1
        shapes = [(*shape[:first], 1, *shape[first:]) for shape in batch.shapes] if lone else None
        letters = "DHW"[-max(count, 2) :]
        layout = "." * first + letters + "." * (batch.ndim() - first - count)
        inner = _NamedWorkspace(
            **{field.name: getattr(workspace, field.name) for field in fields(Workspace)},
            named=tuple(named),
            first=first,
            lone=lone,
        )
        inner.inputs = [batch.relabelled(layout=layout, shapes=shapes)]
        super().run_batch(inner)
        output = inner.outputs[0]
        shapes = [(*shape[:first], *shape[first + 1 :]) for shape in output.shapes] if lone else None
        workspace.outputs = [output.relabelled(layout=batch.layout(), shapes=shapes)]

    def plan_axes(self, samples: Samples, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        workspace = samples.workspace
        assert isinstance(workspace, _NamedWorkspace)
        shapes = np.delete(samples.shapes(), workspace.first, axis=1) if workspace.lone else samples.shapes()
        first, count = workspace.first, extents.shape[1] - workspace.lone
        planned = self._planned(samples, shapes, workspace.named)
        sizes, starts, ends = (np.ascontiguousarray(rows[:, first : first + count]) for rows in planned)
        if not workspace.lone:
            return sizes, starts, ends
        ones, zeros = np.ones((len(samples), 1)), np.zeros((len(samples), 1))
        return np.hstack([ones.astype(np.int64), sizes]), np.hstack([zeros, starts]), np.hstack([ones, ends])

    def _changed_dimensions(self, workspace: Workspace, named: Sequence[int]) -> tuple[int, int]:
        """Return the first dimension that changes in any sample of the batch, and the number of dimensions from it to the last
        one that changes.

        As in DALI, a dimension whose size stays the same counts as unchanged even if its region is larger, which happens when
        the size is rounded up.
        """
        live = [index for index in range(workspace.batch_size) if index not in workspace.failures]
        changed: list[int] = []
        if live:
            samples = Samples(self, workspace, live)
            shapes = samples.shapes()
            sizes, starts, ends = self._planned(samples, shapes, named)
            own = (sizes == shapes) & (starts <= 0) & (ends >= shapes)
            changed = np.flatnonzero(~own.all(axis=0)).tolist()
        ndim = workspace.inputs[0].ndim()
        if not changed:
            return max(ndim - 2, 0), min(ndim, 2)
        first, count = min(changed), max(changed) + 1 - min(changed)
        # A single dimension is resized together with the next one or, if it is the last, with the previous one.
        return (first, count) if count > 1 or ndim == 1 else (min(first, ndim - 2), 2)

    def _planned(
        self, samples: Samples, shapes: np.ndarray, named: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sizes, region starts and region ends of all dimensions; in every mode, unselected dimensions keep their size."""
        axes = list(named)
        own = shapes[:, axes]
        requested = shapes.astype(np.float64)
        requested[:, axes] = self._sizes(samples, own)
        max_sizes = np.zeros(shapes.shape[1])
        max_sizes[axes] = self._max_size(len(own[0])) or 0
        region = self._region_of(samples, own)
        starts, ends = np.zeros(shapes.shape), shapes.astype(np.float64)
        if region is not None:
            starts[:, axes], ends[:, axes] = region
        alignment = np.full(shapes.shape, 0.5)
        alignment[:, axes] = samples.per_axis("alignment", len(axes))
        return plan_axes(
            shapes,
            requested,
            self.args["mode"],
            max_sizes.tolist(),
            (starts, ends),
            False,
            self.args["subpixel_scale"],
            self.args["size_rounding"],
            alignment,
        )

    def _region_of(self, samples: Samples, extents: np.ndarray) -> Sequence[np.ndarray] | None:
        if not samples.given("roi_start"):
            return None
        scales = extents if self.args["roi_relative"] else np.ones_like(extents)
        edges = (samples.per_axis(name, extents.shape[1]) for name in ("roi_start", "roi_end"))
        return [edge.astype(np.float32).astype(np.float64) * scales for edge in edges]

    def _sizes(self, samples: Samples, extents: np.ndarray) -> np.ndarray:
        if samples.given("sizes"):
            return samples.per_axis("sizes", extents.shape[1])
        return samples.per_axis("scales", extents.shape[1]).astype(np.float32) * extents.astype(np.float32)
