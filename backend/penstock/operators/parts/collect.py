"""`collect`: joins the parts of each sample to one sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.operators.parts._parts import COUNTS, as_bits, counts_of, ranges_by_sample
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.workspace import OutputSpec
from penstock.tensors import TensorList, TensorListGPU

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located


@register_operator
class Collect(Operator):
    """Joins the parts into which an operator like :func:`expand` or :func:`crop_boxes` split each sample to one sample again.

    A sample without parts becomes an empty one, of shape (0, ...). Its other extents are those of the batch's first part, or 0 if the
    batch has no parts.

    >>> crops, counts = fn.crop_boxes(images, boxes)
    >>> crops = fn.collect(fn.resize(crops, size=[224, 224]), counts=counts)  # of each image, (boxes, 224, 224, 3)
    """

    schema = Schema(
        name="Collect",
        moves_elements=True,
        inputs=(Input("parts", doc="The parts of all samples, as they were made or processed since."),),
        arguments=(
            COUNTS,
            Argument(
                "join",
                "string",
                "stack",
                "`stack`: along a new first dimension, for parts of one shape; `cat`: along their first dimension.",
                choices=("stack", "cat"),
            ),
        ),
        merges=True,
        unswept="its input is a batch of another size",
    )

    def setup(self) -> None:
        if self.args["join"] not in ("stack", "cat"):
            raise ValueError(f"`join` must be `stack` or `cat`. Got: {self.args['join']!r}")

    def run(self, workspace: Workspace) -> None:
        parts = workspace.inputs[0]
        stacks = self.args["join"] == "stack"
        groups = ranges_by_sample(parts, counts_of(workspace))
        if not stacks and len(parts) and not parts.ndim():
            raise RuntimeError("Scalars cannot be joined with `cat`: use `stack`")
        default = _default_shape(parts, stacks)
        shapes = [
            default
            if index in workspace.failures
            else self._shape(workspace, index, [parts.shapes[number] for number in own], default, stacks)
            for index, own in enumerate(groups)
        ]
        layout = parts.layout()
        named = "N" + layout if stacks and layout and "N" not in layout else "" if stacks else layout
        joined = workspace.allocate(shapes, OutputSpec(parts.dtype, named, parts.ndim() + stacks))
        live = [index for index, own in enumerate(groups) if own and index not in workspace.failures]
        if isinstance(joined, TensorListGPU):
            places = as_bits(joined)
            _join_on_gpu(parts, [groups[index] for index in live], [places[index] for index in live])
        else:
            _join_on_cpu(workspace, groups, live, joined, stacks)
        joined.positions = workspace.positions
        workspace.outputs = [joined]

    @staticmethod
    def _shape(
        workspace: Workspace, index: int, own: Sequence[tuple[int, ...]], default: tuple[int, ...], stacks: bool
    ) -> tuple[int, ...]:
        if not own:
            return default
        first = 0 if stacks else 1
        shapes = sorted({shape[first:] for shape in own})
        if len(shapes) > 1:
            told = ", ".join(str(list(shape)) for shape in shapes)
            workspace.fail(
                index,
                RuntimeError(
                    f"The parts of a sample differ in shape ({told}), so they cannot be one tensor: resize or pad them first"
                ),
            )
            return default
        return (len(own) if stacks else sum(shape[0] for shape in own), *shapes[0])


def _join_on_cpu(
    workspace: Workspace, groups: Sequence[range], live: Sequence[int], joined: TensorList, stacks: bool
) -> None:
    parts = workspace.inputs[0].samples
    join = np.stack if stacks else np.concatenate

    def fill(number: int) -> None:
        own = groups[live[number]]
        join(parts[own.start : own.stop], axis=0, out=joined.samples[live[number]])

    workspace.parallel(fill, len(live), [joined.samples[index].nbytes for index in live])


def _join_on_gpu(parts: TensorListGPU, groups: Sequence[range], targets: Sequence[Located]) -> None:
    """Copy all parts in one launch. In a target, parts lie one after the other, whether they are stacked or concatenated."""
    from penstock.kernels.cuda.window import join

    located = [part.flat() for part in as_bits(parts)]
    join([located[own.start : own.stop] for own in groups], [target.flat() for target in targets], 0)


def _default_shape(parts: TensorList, stacks: bool) -> tuple[int, ...]:
    """Return the shape of a sample without parts."""
    first = parts.shapes[0] if len(parts) else (0,) * parts.ndim()
    return (0, *first) if stacks else (0, *first[1:])
