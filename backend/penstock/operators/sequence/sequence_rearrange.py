"""`sequence_rearrange`: reorders, repeats and drops the frames of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures
from penstock.schema.operator import Shape
from penstock.tensors.places import places_of_samples

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


@register_operator
class SequenceRearrange(Operator[None, np.ndarray]):
    """Output frame i is input frame ``new_order[i]``.

    >>> backwards = fn.sequence_rearrange(sequences, new_order=[2, 1, 0])
    """

    plans_by_shape = True
    schema = Schema(
        name="SequenceRearrange",
        inputs=(
            Input(
                "input",
                doc="Sequences: at least two dimensions, the first of which is F or unnamed.",
                example=lambda _: pictures("FHWC"),
            ),
        ),
        arguments=(
            Argument(
                "new_order",
                "int32[]",
                None,
                "Indices of input frames, from 0.",
                required=True,
                tensor=True,
                example=[1, 0, 1],
            ),
        ),
    )

    def setup(self) -> None:
        if self.args["new_order"] == []:
            raise RuntimeError("Empty result sequences are not allowed: `new_order` must have at least one frame")

    def describe(self, workspace: Workspace[None, np.ndarray]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = batch.layout()
        if layout and layout[0] != "F":
            raise RuntimeError(
                "Expected sequence as the input, where outermost dimension represents frames dimension `F`, "
                f'got data with layout = "{layout}"'
            )
        if len(batch) and batch.ndim() < 2:
            raise RuntimeError(f"Sequence elements must have at least 1 dim, got data of {batch.ndim()}")
        return [OutputSpec(batch.dtype, layout, batch.ndim())]

    def infer(self, sample: Sample[None, np.ndarray]) -> tuple[int, ...]:
        computed = sample.tensor_argument("new_order")
        if computed is not None and computed.ndim != 1:
            raise RuntimeError(f"`new_order` must have one dimension, got {computed.ndim}")
        shape, order = sample.shapes[0], sample["new_order"]
        if not order:
            raise RuntimeError(
                f"Empty `new_order` for sample {sample.index} is not allowed: a sequence has at least one frame"
            )
        for position, index in enumerate(order):
            if not 0 <= index < shape[0]:
                raise IndexError(
                    f"new_order[{position}] must be between 0 and input_sequence_length = {shape[0]} for sample "
                    f"{sample.index}, but it is: {index}"
                )
        sample.plan = np.array(order, np.intp)
        return (len(order), *shape[1:])

    def compute_samples(self, workspace: Workspace[None, np.ndarray], shapes: Sequence[Shape]) -> None:
        if not self._copy_frames(workspace):
            super().compute_samples(workspace, shapes)

    def _copy_frames(self, workspace: Workspace[None, np.ndarray]) -> bool:
        """Copy the frames of all samples in one call; return False, copying nothing, if this is not supported."""
        from penstock.kernels.cpu.blocks import Blocks, copy_blocks, volumes

        source, output = workspace.inputs[0], workspace.outputs[0]
        if workspace.arguments or workspace.failures or not workspace.batch_size:
            return False
        places, targets = places_of_samples(source), places_of_samples(output)
        if places is None or targets is None:
            return False
        order = np.array(self.args["new_order"])
        sizes = np.broadcast_to(volumes(source.shapes, 1) * output.contiguous_elements().itemsize, places.shape)
        starts, stops = (sizes[:, None] * frames for frames in (order, np.arange(len(order))))
        lengths = np.repeat(sizes, len(order))
        sources, copies = (places[:, None] + starts).reshape(-1), (targets[:, None] + stops).reshape(-1)
        copy_blocks(workspace, Blocks(sources, copies, lengths, lengths, 1, lengths))
        return True

    def compute(self, sample: Sample[None, np.ndarray]) -> None:
        # The indices have been checked: with the mode `raise`, NumPy would check them again, and buffer the output.
        np.take(sample.inputs[0], sample.plan, axis=0, out=sample.outputs[0], mode="clip")

    def compute_batch(self, workspace: Workspace[None, np.ndarray]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        samples = workspace.live
        # All sequences share one plan for each pair of an output position and an input position, so that copies are grouped.
        ways: dict[tuple[int, int], tuple[int, int]] = {}
        sources, targets, plans = [], [], []
        for sample, source, target in zip(
            samples, locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        ):
            own = [ways.setdefault(way, way) for way in enumerate(sample.plan.tolist())]
            sources += [source] * len(own)
            targets += [target] * len(own)
            plans += own

        def copy_of(way: tuple[int, int], source: Located, target: Located) -> WindowCopy:
            rest = source.shape[1:]
            place, index = ((number, *(0,) * len(rest)) for number in way)
            return WindowCopy(source, target, anchor=index, place=place, extents=(1, *rest))

        copy_grouped(sources, targets, plans, copy_of)
