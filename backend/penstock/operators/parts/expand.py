"""`expand`: splits samples into slices; each slice is a sample."""

from __future__ import annotations

from penstock.operators.parts._parts import mark_parts
from penstock.schema import Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays


@register_operator
class Expand(Operator):
    """Splits each sample along the first dimension, without a copy: each slice, such as a frame of a video, is a sample.

    The slices of all samples form one batch, which operators process like any other; :func:`collect` joins them again. Returns
    the slices, and the number of slices of each sample. If a slice fails in a later operator, its sample fails.

    >>> frames, counts = fn.expand(videos)
    >>> videos = fn.collect(fn.resize(frames, size=[224, 224]), counts=counts)
    """

    schema = Schema(
        name="Expand",
        moves_elements=True,
        inputs=(
            Input(
                "input",
                doc="Data of any type, with at least one dimension.",
                example=random_arrays((2, 3, 4), (3, 2, 2), (1, 3, 3)),
            ),
        ),
        outputs=2,
        host_outputs=(1,),
        unswept="its first output is a batch of another size",
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if len(batch) and not batch.ndim():
            raise RuntimeError("Scalars have no slices: `expand` takes samples with at least one dimension")
        live = [index for index in range(len(batch)) if index not in workspace.failures]
        counts = [0] * len(batch)
        for index in live:
            counts[index] = batch.shapes[index][0]
        slices = (batch if len(live) == len(batch) else batch.subset(live)).unfolded()
        workspace.outputs = [slices, mark_parts(workspace, slices, counts)]
