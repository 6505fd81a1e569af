"""`segmentation.select_masks`: the polygons of selected masks, with only the vertices that these polygons use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays, random_arrays
from penstock.schema.operator import Shape


@register_operator
class SelectMasks(Operator[None, list[tuple[int, int, int]]]):
    """Keeps the polygons of the listed masks, in the order of the list; if a mask has several polygons, only the last one.

    >>> polygons, vertices = fn.segmentation.select_masks(mask_ids, polygons, vertices)
    """

    schema = Schema(
        name="segmentation__SelectMasks",
        devices=("cpu",),
        inputs=(
            Input(
                "mask_ids",
                doc="INT32, of shape (n,): the masks to keep, without repetition.",
                example=fixed_arrays([1], [0, 1], [0], dtype=np.int32),
            ),
            Input(
                "polygons",
                doc="INT32, of shape (polygons, 3): the mask, and the first vertex and the one past the last.",
                example=fixed_arrays([[0, 0, 3], [1, 3, 7]], dtype=np.int32),
            ),
            Input("vertices", doc="Of shape (vertices, coordinates).", example=random_arrays((7, 2), low=0)),
        ),
        arguments=(
            Argument("reindex_masks", "bool", False, "Renumber the masks from 0, in the order of ``mask_ids``."),
        ),
        outputs=2,
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        for batch, name, ndim in zip(workspace.inputs, ("mask_ids", "polygons", "vertices"), (1, 2, 2)):
            if len(batch) and batch.ndim() != ndim:
                raise RuntimeError(f"`{name}` is expected to be {ndim}D, got {batch.ndim()}D")
            if name != "vertices" and batch.dtype != INT32:
                raise RuntimeError(f"`{name}` is expected to be int32, got {dtype_name(batch.dtype)}")
        return [OutputSpec(INT32, "", 2), OutputSpec(workspace.inputs[2].dtype, "", 2)]

    def infer(self, sample: Sample[None, list[tuple[int, int, int]]]) -> list[tuple[int, ...]]:
        masks, polygons, vertices = sample.inputs
        if polygons.shape[1] != 3:
            raise RuntimeError(
                "``polygons`` is expected to contain 2D tensors with 3 columns: ``mask_id, start_idx, end_idx``. "
                f"Got {polygons.shape[1]} columns."
            )
        numbers = masks.tolist()
        if len(set(numbers)) != len(numbers):
            raise RuntimeError(f"`mask_ids` should not have duplicated values: {numbers}")
        ranges = {mask: (start, end) for mask, start, end in polygons.tolist()}
        sample.plan = [(mask, *_checked_range(mask, ranges, len(vertices))) for mask in numbers]
        return [(len(numbers), 3), (sum(end - start for _, start, end in sample.plan), vertices.shape[1])]

    def compute_samples(self, workspace: Workspace[None, list[tuple[int, int, int]]], shapes: Sequence[Shape]) -> None:
        if workspace.failures or not workspace.batch_size:
            super().compute_samples(workspace, shapes)
            return
        rows: list[tuple[int, int, int]] = []
        selected: list[np.ndarray] = []
        for sample, vertices in zip(workspace.live, workspace.inputs[2].samples):
            rows += self._polygons(sample.plan)
            selected += [vertices[start:end] for _, start, end in sample.plan]
        polygons, chosen = (batch.contiguous_elements() for batch in workspace.outputs)
        if rows:
            polygons[:] = np.array(rows, np.int32).reshape(-1)
            chosen[:] = np.concatenate([part.reshape(-1) for part in selected])

    def compute(self, sample: Sample[None, list[tuple[int, int, int]]]) -> None:
        vertices, (polygons, kept) = sample.inputs[2], sample.outputs
        rows = self._polygons(sample.plan)
        for index, ((_, first, stop), (_, start, end)) in enumerate(zip(rows, sample.plan)):
            polygons[index] = rows[index]
            kept[first:stop] = vertices[start:end]

    def _polygons(self, ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """Return, for each selected mask, its number and the start and end of its vertices among the selected vertices."""
        rows, filled = [], 0
        for index, (mask, start, end) in enumerate(ranges):
            rows.append((index if self.args["reindex_masks"] else mask, filled, filled + end - start))
            filled += end - start
        return rows


def _checked_range(mask: int, ranges: dict[int, tuple[int, int]], vertices: int) -> tuple[int, int]:
    """Return start and end of a mask's vertices; raise RuntimeError if there is no such mask, or a vertex does not exist."""
    if mask not in ranges:
        raise RuntimeError(f"Selected mask_id {mask} is not present in the input.")
    start, end = ranges[mask]
    if not 0 <= start <= vertices or not 0 <= end <= vertices:
        raise RuntimeError(
            f"Vertex index range for mask id {mask} [{start}, {end}) is out of bounds. "
            f"Expected to be within the range of available vertices [0, {vertices})."
        )
    if start > end:
        raise RuntimeError(f"Vertex start index can't be after end index. Got [{start}, {end})")
    return start, end
