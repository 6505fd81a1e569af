"""Decoding on the GPU, fused with the next steps: only some images of a large batch are in memory at a time."""

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
    """A batch whose images are processed as they arrive, because others soon overwrite their memory."""

    @property
    def outputs(self) -> TensorListGPU:
        """The outputs to fill."""

    @property
    def planned(self) -> PlannedResampling:
        """The resampling plan of the outputs."""

    def resize(self, rows: np.ndarray, addresses: np.ndarray) -> None:
        """Compute the outputs of ``rows`` (ascending) from whole images that are stored elsewhere."""


class _Decoder(Protocol):
    """The part of the first step that is used here."""

    is_cheap_on_host: bool

    def prepare(self, workspace: Workspace) -> None:
        """Start reading files."""

    def submit_fused(
        self, workspace: Workspace, follow: Callable[[TensorListGPU], PlannedResampling | None]
    ) -> EarlyStart:
        """Begin to decode; ``follow`` processes the images instead of storing them."""

    def collect_fused(self, workspace: Workspace) -> dict[int, Any] | None:
        """Wait for the images; return those that ``follow`` did not process, by their positions."""

    def is_ready(self, workspace: Workspace) -> bool:
        """Return whether all work is done."""

    def await_begun(self, workspace: Workspace) -> None:
        """Wait until all work is done."""

    def run(self, workspace: Workspace) -> None:
        """Complete a batch whose images are not processed in parts."""


class _Follower(Protocol):
    """The part of the second step that is used here."""

    def follow(self, workspace: Workspace) -> _InParts | None:
        """Return the work to do on images as they arrive; None if :meth:`run` has to compute the batch."""

    counts: Counter[str]
    is_cheap_on_host: bool

    def run(self, workspace: Workspace) -> None:
        """Compute the outputs of whole images."""


@dataclass(slots=True)
class _Begun:
    """A batch whose work has begun.

    Attributes:
        first, second: the steps' workspaces.
        following: the work on the images; None: they are stored.
    """

    first: Workspace
    second: Workspace
    following: _InParts | None = None


@register_operator
class DecodeInParts(FusedOperator):
    """Resizes some images of a batch in the GPU's memory before others are decoded to the same memory.

    Only the pixels of each image that are read are decoded. Where that is not possible, the batch is decoded, and then
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
        # Samples that the second operator counts are reported as this one's.
        self._follower.counts = self.counts
        self.is_cheap_on_host = self._decoder.is_cheap_on_host and self._follower.is_cheap_on_host

    @property
    def begins_early(self) -> bool:
        return self.operators[0].begins_early

    def prepare(self, workspace: Workspace) -> None:
        first = self._begun(workspace).first
        self.call_step(0, self._decoder.prepare, first)

    def _begun(self, workspace: Workspace) -> _Begun:
        """Return the state of the batch's work, created if there is none yet."""
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
                # Run the operators one after the other: results are then allocated only once other batches have freed theirs.
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
                # All images are decoded by now.
                second.inputs, second.failures = first.outputs, first.failures
                self.call_step(1, self._follower.run, second)
                workspace.outputs, workspace.failures = second.outputs, second.failures
            else:
                self._complete(workspace, first, following, late)
        finally:
            first.end()
            second.end()

    def _complete(self, workspace: Workspace, first: Workspace, following: _InParts, late: dict[int, Any]) -> None:
        """Resize images that were decoded later than the others, except those that failed."""
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
