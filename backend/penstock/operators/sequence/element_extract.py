"""`element_extract`: single frames of a sequence, one per output."""

from __future__ import annotations

from typing import Any

from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures
from penstock.tensors import TensorList


def _count_frames(arguments: dict[str, Any]) -> int:
    if arguments.get("element_map") is None:
        raise ValueError(
            'The argument "element_map" in operator "ElementExtract" has no default value: it must be given'
        )
    return len(arguments["element_map"])


@register_operator
class ElementExtract(Operator):
    """Output i is frame ``element_map[i]`` of each sequence; frames are not copied.

    >>> first, third = fn.element_extract(sequences, element_map=[0, 2])
    """

    schema = Schema(
        name="ElementExtract",
        inputs=(
            Input(
                "input",
                doc="Sequences: at least two dimensions, the first of which is F or unnamed.",
                example=lambda _: pictures("FHWC"),
            ),
        ),
        arguments=(
            Argument("element_map", "int32[]", None, "Indices of the frames, from 0.", required=True, example=[1, 0]),
        ),
        outputs=_count_frames,
    )

    def setup(self) -> None:
        if not self.args["element_map"]:
            raise RuntimeError("`element_map` must name at least one frame")
        for index in self.args["element_map"]:
            if index < 0:
                raise RuntimeError(f"Negative indices in `element_map` are not allowed, found: {index}.")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        layout = batch.layout()
        if layout and layout[0] != "F":
            raise RuntimeError(
                f"Input layout must describe a sequence - it must start with 'F', got '{layout}' instead."
            )
        if len(batch) and batch.ndim() < 2:
            raise RuntimeError(
                "Input must have at least two dimensions - outermost for sequence and at least one for data elements. "
                f"Got {batch.ndim()}."
            )
        furthest = max(self.args["element_map"])
        for index, shape in enumerate(batch.shapes):
            if furthest >= shape[0] and index not in workspace.failures:
                error = IndexError(
                    f"Index `{furthest}` from `element_map` is out of bounds for sample with sequence length equal `{shape[0]}`."
                )
                workspace.fail(index, error)
        workspace.outputs = [self._frames(workspace, index) for index in self.args["element_map"]]

    @staticmethod
    def _frames(workspace: Workspace, index: int) -> TensorList:
        batch = workspace.inputs[0]
        # A sample with too few frames has failed, and gets an empty frame.
        frames = [sample[index] if index < len(sample) else sample.reshape(-1)[:0] for sample in batch.samples]
        return type(batch).of_samples(frames, batch.layout()[1:], batch.dtype, batch.ndim() - 1)
