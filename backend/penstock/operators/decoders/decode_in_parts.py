"""Decoding on the GPU fused with resizing, so that only some images of a large batch are in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from penstock.schema import OutputSpec, Schema, Workspace, register_operator
from penstock.schema.early_start import EarlyStart
from penstock.schema.fused import AT_ONCE, FusedOperator
from penstock.tensors import TensorListGPU

if TYPE_CHECKING:
    from penstock.kernels.cuda.resample import PlannedResampling


class _InParts(Protocol):
    """A batch whose images are resized as soon as they are decoded, because later images are decoded to the same memory."""

    @property
    def outputs(self) -> TensorListGPU:
        """The outputs, which :meth:`resize` and the decoder's resampling fill."""

    @property
    def planned(self) -> PlannedResampling:
        """The resampling from images to outputs."""

    def resize(self, rows: np.ndarray, addresses: np.ndarray) -> None:
        """Compute some outputs from whole images.

        Args:
            rows: the indices of the images in the batch, ascending.
            addresses: the images' addresses on the GPU.
        """


class _Decoder(Protocol):
    """The attributes and methods of the first operator, the decoder, that are used here."""

    is_cheap_on_host: bool

    def prepare(self, workspace: Workspace) -> None:
        """Start reading the files' headers."""

    def submit_fused(
        self, workspace: Workspace, follow: Callable[[TensorListGPU], PlannedResampling | None]
    ) -> EarlyStart:
        """Start decoding; the resampling that ``follow`` returns, if any, is applied to images instead of storing them."""

    def collect_fused(self, workspace: Workspace) -> dict[int, Any] | None:
        """Wait for the images; return those that are not resampled yet, by their indices. None if images are stored."""

    def is_ready(self, workspace: Workspace) -> bool:
        """Return whether all work that was started is done."""

    def await_begun(self, workspace: Workspace) -> None:
        """Wait until all work that was started is done."""

    def run(self, workspace: Workspace) -> None:
        """Complete a batch whose images are stored."""


class _Follower(Protocol):
    """The attributes and methods of the second operator, which resizes, that are used here."""

    def follow(self, workspace: Workspace) -> _InParts | None:
        """Return the work to do on images as they are decoded; None if :meth:`run` has to compute the batch from stored images."""

    counts: Counter[str]
    is_cheap_on_host: bool

    def run(self, workspace: Workspace) -> None:
        """Compute the outputs from stored images."""


@dataclass(slots=True)
class _Begun:
    """A batch that is being decoded.

    Attributes:
        first, second: the workspaces of the two operators.
        following: the resizing of the decoded images; None: images are stored before they are resized.
    """

    first: Workspace
    second: Workspace
    following: _InParts | None = None


@register_operator
class DecodeInParts(FusedOperator):
    """Decodes and resizes a batch on the GPU in parts: each part is resized before the next one is decoded to the same memory.

    Only those pixels of each image are decoded that resizing reads. Where a batch cannot be processed in parts, it is decoded, and then
    resized.
    """

    schema = Schema(
        name="_fused__DecodeInParts",
        devices=("gpu",),
        fuses=(("decoders__Image",), ("_fused__ResizeNormalize",)),
        hidden=True,
    )
    nests = True

    def bind(self, payload: object) -> None:
        super().bind(payload)
        self._decoder, self._follower = cast(tuple[_Decoder, _Follower], self.operators)
        # The second operator counts samples in this operator's counters.
        self._follower.counts = self.counts
        self.is_cheap_on_host = self._decoder.is_cheap_on_host and self._follower.is_cheap_on_host

    @property
    def begins_early(self) -> bool:
        return self.operators[0].begins_early

    def prepare(self, workspace: Workspace) -> None:
        first = self._begun(workspace).first
        self.call_step(0, self._decoder.prepare, first)

    def _begun(self, workspace: Workspace) -> _Begun:
        """Return the state of the batch's decoding; create it if there is none yet."""
        if workspace.begun is None:
            first, second = self.step(workspace, 0), self.step(workspace, 1)
            first.inputs = list(workspace.inputs)
            workspace.begun = _Begun(first, second)
        begun: _Begun = workspace.begun
        return begun

    def begin(self, workspace: Workspace) -> EarlyStart:
        begun = self._begun(workspace)
        first, second = begun.first, begun.second

        def follow(images: TensorListGPU) -> PlannedResampling | None:
            second.inputs = [images]
            try:
                begun.following = self._follower.follow(second)
            except MemoryError:
                # Run one operator after the other, so that outputs are allocated later, when other batches may have freed memory.
                begun.following = None
            return None if begun.following is None else begun.following.planned

        try:
            started = self.call_step(0, self._decoder.submit_fused, first, follow)
        except BaseException:
            first.end()
            raise
        workspace.failures = first.failures
        return started

    def is_ready(self, workspace: Workspace) -> bool:
        return self._decoder.is_ready(workspace.begun.first)

    def await_begun(self, workspace: Workspace) -> None:
        self._decoder.await_begun(workspace.begun.first)

    def run(self, workspace: Workspace) -> None:
        if workspace.begun is None:
            self.begin(workspace)
        begun: _Begun = workspace.begun
        first, second, following = begun.first, begun.second, begun.following
        try:
            late = self.call_step(0, self._decoder.collect_fused, first)
            if late is None or following is None:
                self.call_step(0, self._decoder.run, first)
                # The decoder's run has waited until all images are decoded.
                second.inputs, second.failures = first.outputs, first.failures
                self.call_step(1, self._follower.run, second)
                workspace.outputs, workspace.failures = second.outputs, second.failures
            else:
                self._complete(workspace, first, following, late)
        finally:
            first.end()
            second.end()

    def _complete(self, workspace: Workspace, first: Workspace, following: _InParts, late: dict[int, Any]) -> None:
        """Resize the images in ``late``, and set the outputs and failures of the batch; failed samples get empty outputs."""
        from penstock.kernels.cuda.launch import addresses_of, locate

        if late:
            following.resize(np.array([*late]), addresses_of([locate(image) for image in late.values()]))
        outputs = following.outputs
        self.counts[AT_ONCE] += len(outputs) - len(first.failures)
        workspace.failures = first.failures
        if first.failures:
            shapes = [() if index in first.failures else shape for index, shape in enumerate(outputs.shapes)]
            shapes = [shape or (0,) * outputs.ndim() for shape in shapes]
            spec = OutputSpec(outputs.dtype, outputs.layout(), outputs.ndim())
            kept: TensorListGPU = workspace.allocate(shapes, spec, 0)
            for target, source in zip(kept.samples, outputs.samples):
                if target.size:
                    target[...] = source
            outputs = kept
        workspace.outputs = [outputs]
