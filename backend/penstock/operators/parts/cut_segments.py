"""`cut_segments`: cuts segments out of recordings; each clip is a sample."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import Region
from penstock.operators.parts._parts import cut_regions, mark_parts
from penstock.schema import Argument, Input, Operator, Schema, Workspace, example_data, register_operator
from penstock.tensors import TensorListGPU


@register_operator
class CutSegments(Operator):
    """Cuts segments out of each recording. Each clip is a sample, and the clips of all recordings form one batch.

    Returns the clips, and the number of clips of each recording. Segments may overlap, and must lie within their recording. If a clip
    fails in a later operator, its recording fails.

    >>> clips, counts = fn.cut_segments(audio, fn.speech_segments(probabilities, length=audio.shape()[0]))
    >>> clips, counts = fn.cut_segments(mel_spectrograms, segments, axis=1)
    """

    schema = Schema(
        name="CutSegments",
        inputs=(
            Input("recordings", doc="Signals or spectrograms of any type.", example=example_data.signals),
            Input(
                "segments",
                device="match_or_cpu",
                doc="Whole numbers of shape (segments, 2): the first position of each and the one after its last; best on the CPU, where "
                "they are needed.",
                example=example_data.fixed_arrays([[0, 500], [300, 1000]], [[1, 2]], dtype=np.int32),
            ),
        ),
        arguments=(Argument("axis", "int32", 0, "The dimension that is time; negative: from the end."),),
        outputs=2,
        host_outputs=(1,),
        unswept="its first output is a batch of another size",
    )

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        recordings, given = workspace.inputs
        segments = given.as_cpu() if isinstance(given, TensorListGPU) else given
        ndim, axis = recordings.ndim(), self.args["axis"]
        if len(recordings) and not -ndim <= axis < ndim:
            raise RuntimeError(
                f"`axis` must be from {-ndim} to {ndim - 1} for recordings of {ndim} dimensions. Got: {axis}"
            )
        regions: list[list[Region]] = []
        for index, (shape, own) in enumerate(zip(recordings.shapes, segments.samples)):
            regions.append([])
            if index not in workspace.failures:
                try:
                    regions[-1] = _regions(shape, own, axis % ndim)
                except ValueError as error:
                    workspace.fail(index, error)
        # The fill value is not used: segments lie within their recording.
        clips = cut_regions(workspace, regions, self.input_layout(workspace), [0.0])
        workspace.outputs = [clips, mark_parts(workspace, clips, [len(own) for own in regions])]


def _regions(shape: tuple[int, ...], segments: np.ndarray, axis: int) -> list[Region]:
    """Return the regions of the segments in a recording.

    Raises:
        ValueError: ``segments`` has another shape than (segments, 2) or is not of integers; or a segment is empty or reaches outside of
            the recording.
    """
    if segments.ndim != 2 or segments.shape[1] != 2:
        if segments.size:
            raise ValueError(f"Segments must have the shape (segments, 2). Got: {list(segments.shape)}")
        return []
    if segments.dtype.kind not in "iu":
        raise ValueError(f"Segments must be whole numbers. Got: {segments.dtype}")
    regions = []
    for number, (start, stop) in enumerate(segments.tolist()):
        if not 0 <= start < stop <= shape[axis]:
            raise ValueError(
                f"Segment {number}, from {start} to {stop}, is empty or reaches outside of its recording of {shape[axis]} samples"
            )
        anchors, extents = [0] * len(shape), list(shape)
        anchors[axis], extents[axis] = start, stop - start
        regions.append(Region(tuple(anchors), tuple(extents)))
    return regions
