"""`reshape`: changes the shape, but not the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.kernels.reshaping import check_extents, reshaped
from penstock.operators.generic._new_shape import (
    DATA_AND_SHAPE,
    EXAMPLES,
    SHAPE_ARGUMENTS,
    check_one_shape,
    check_shapes,
    extents_from_input,
)
from penstock.schema import Equivalent, Operator, Sample, Schema, Workspace, register_operator


@register_operator
class Reshape(Operator):
    """Returns the same elements with another shape or layout, without a copy."""

    schema = Schema(
        name="Reshape",
        moves_elements=True,
        inputs=DATA_AND_SHAPE,
        min_inputs=1,
        arguments=SHAPE_ARGUMENTS,
        examples=EXAMPLES,
        equivalents=(Equivalent("numpy.reshape"),),
    )

    def setup(self) -> None:
        check_extents(self.args["shape"])
        check_one_shape(self)
        sources = ("shape", "rel_shape", "layout", "src_dims")
        self._nothing_given = not any(self.given(name) for name in sources)

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        check_one_shape(self, len(workspace.inputs) == 2)
        if self._nothing_given and len(workspace.inputs) == 1:
            raise RuntimeError(
                "`reshape` is no-op: arguments specify neither new shape nor layout. Give `shape`, `rel_shape`, `src_dims` "
                "or `layout`"
            )
        self._check_lists(workspace)
        check_shapes(workspace)
        shapes = [self._shape(workspace, index) for index in range(len(batch))]
        good = [shape for index, shape in enumerate(shapes) if index not in workspace.failures]
        if len({len(shape) for shape in good}) > 1:
            raise RuntimeError(f"All samples must have the same number of dimensions, but the new shapes are {good}")
        rank = len(good[0]) if good else self._rank(batch)
        if workspace.failures:
            batch = batch.emptied(workspace.failures)
            empty = (0,) * max(rank, 1)
            shapes = [empty if index in workspace.failures else shape for index, shape in enumerate(shapes)]
        workspace.outputs = [self._view(batch, shapes, rank)]

    def _view(self, batch: Any, shapes: Sequence[tuple[int, ...]], rank: int) -> object:
        layout = self._layout(batch, rank)
        if shapes == batch.shapes:
            return batch.relabelled(layout)
        return batch.relabelled(layout, shapes, rank)

    def _rank(self, batch: Any) -> int:
        wanted = next((self.args[n] for n in ("shape", "rel_shape", "src_dims") if self.args[n] is not None), None)
        return batch.ndim() if wanted is None else len(wanted)

    def _layout(self, batch: Any, rank: int) -> str:
        layout = self.args["layout"]
        if layout is None:
            if rank != batch.ndim() and batch.layout() and self._only_reordered():
                raise ValueError(
                    f"The layout '{batch.layout()}' has {batch.ndim()} dimensions, but `src_dims` gives {rank}: "
                    "give `layout` or `rel_shape`, too"
                )
            return batch.layout() if rank == batch.ndim() else ""
        if layout and len(layout) != rank:
            raise RuntimeError(f"The requested layout '{layout}' is not compatible with a {rank}-dimensional shape")
        return layout

    def _only_reordered(self) -> bool:
        return self.given("src_dims") and not self.given("rel_shape") and not self.given("shape")

    def _shape(self, workspace: Workspace, index: int) -> tuple[int, ...]:
        """Return a sample's new shape. If there is none, record the failure and return ``()``."""
        shape = workspace.inputs[0].shapes[index]
        if index in workspace.failures:
            return ()
        sample = Sample(self, workspace, index)
        if len(workspace.inputs) == 2:
            wanted, relative = extents_from_input(sample), False
        else:
            relative = sample.given("rel_shape")
            wanted = sample["rel_shape"] if relative else sample["shape"]
        try:
            return reshaped(shape, wanted, relative, sample["src_dims"], self.volume(shape, workspace))
        except RuntimeError as error:
            workspace.fail(index, error)
            return ()

    def volume(self, shape: tuple[int, ...], workspace: Workspace) -> float | None:
        """Return the number of elements that the output must have; None: as many as the input, of shape ``shape``."""
        return None
