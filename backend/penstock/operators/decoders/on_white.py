"""`decoders.on_white`: decodes images, transparent ones on a white background."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import RGB, UINT8, dtype_name
from penstock.errors import PenstockError
from penstock.kernels.codecs.image_codec import decode_to_coefficients
from penstock.kernels.codecs.jpeg_baseline import coefficients_of
from penstock.kernels.codecs.transparency import asks_pillow, decode_on_white
from penstock.kernels.windows import Region
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import (
    DECODER_ARGUMENTS,
    ENCODED_DOC,
    DecodePlan,
    Encoded,
    ImageDecoder,
    encoded_bytes,
    undecodable,
)
from penstock.schema import Equivalent, Input, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, photo_files
from penstock.schema.workspace import Started

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.streaming import StreamedBatch, Streaming
    from penstock.tensors import TensorListGPU


@register_operator
class OnWhite(ImageDecoder):
    """Decodes images as `decoders.image` does, and puts transparent ones (PNG, WebP, GIF, TIFF) on a white background.

    Decoders return the colours that a file stores for transparent pixels. Image processors of `transformers`, which this
    operator follows, show such images as a browser does on a white page. CMYK, and colours of 16 bits, become RGB as Pillow
    converts them.

    On the device ``mixed``, pixels are the same. The CPU decodes, and each image is copied to the GPU while others are decoded.
    Of most JPEGs (baseline, 4:2:0, upright), it reads the coefficients, and the GPU makes the pixels.

    >>> images = fn.decoders.on_white(files)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__OnWhite",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=DECODER_ARGUMENTS,
        shown=(Example({}, (photo_files,)),),
        equivalents=(Equivalent("PIL.Image.alpha_composite"),),
        unswept="of the decoders' arguments, it takes only what gives upright images, in RGB of uint8",
    )

    def setup(self) -> None:
        super().setup()
        if self.output_type != RGB or self.args["dtype"] != UINT8:
            raise ValueError(
                f"Images on white are RGB of uint8. Got: {self.output_type.name} of {dtype_name(self.args['dtype'])}"
            )
        if not self.args["adjust_orientation"]:
            raise ValueError("Images on white are upright: `adjust_orientation` is True")

    def _decode(self, sample: Sample[Encoded, DecodePlan], region: Region | None, output: np.ndarray) -> None:
        file = encoded_bytes(sample)
        try:
            if (
                output.size
                and asks_pillow(sample.plan.header)
                and decode_on_white(file, output, sample.workspace.decoding)
            ):
                return
        except PenstockError as error:
            raise undecodable(error, sample) from None
        super()._decode(sample, region, output)

    def decode_part_into(self, sample: Sample[Encoded, DecodePlan], part: Region, output: np.ndarray) -> bool:
        return not asks_pillow(sample.plan.header) and super().decode_part_into(sample, part, output)

    def decode_part(self, sample: Sample[Encoded, DecodePlan], part: Region) -> np.ndarray | None:
        return None if asks_pillow(sample.plan.header) else super().decode_part(sample, part)

    # -- device "mixed" ----------------------------------------------------------------------------------------

    _through: Streaming | None = None

    @property
    def is_cheap_on_host(self) -> bool:
        return False

    def begin(self, workspace: Workspace[Encoded]) -> None:
        from penstock.kernels.cuda.streaming import StreamedBatch, Streaming

        if self._through is None:
            self._through = Streaming()
        (spec,) = self.describe(workspace)
        (shapes,) = self.infer_samples(workspace, 1)
        rooms = [2 * coefficients_of(*shape[:2]) for shape in shapes]
        batch = StreamedBatch(self._through, shapes, spec.dtype, spec.layout, rooms)
        samples, begun = list(workspace.samples), _Begun(batch)

        def task(index: int) -> None:
            sample = samples[index]
            if sample is None:
                return
            try:
                coefficients = batch.room(index).view(np.int16)[: rooms[index] // 2]
                quantizers = self._read_coefficients(sample, coefficients)
                if quantizers is not None:
                    begun.unfinished[index] = batch.send_other(coefficients, index), quantizers
                    return
                self.decode_into(sample, batch.host(index))
                batch.send(index)
            except Exception as error:
                begun.errors[index] = error

        begun.started = workspace.start(task, len(samples), [math.prod(shape) for shape in shapes])
        workspace.begun = begun

    def _read_coefficients(self, sample: Sample[Encoded, DecodePlan], output: np.ndarray) -> np.ndarray | None:
        header = sample.plan.header
        if asks_pillow(header) or self.args["use_fast_idct"]:
            return None
        return decode_to_coefficients(encoded_bytes(sample), header, output)

    def is_ready(self, workspace: Workspace) -> bool:
        return bool(workspace.begun.started.is_done())

    def _run_on_gpu(self, workspace: Workspace[Encoded]) -> None:
        if workspace.begun is None:
            self.begin(workspace)
        begun: _Begun = workspace.begun
        assert begun.started is not None
        begun.started.wait()
        workspace.outputs = [begun.finish()]
        for index in sorted(begun.errors):
            workspace.fail(index, begun.errors[index])


@dataclass
class _Begun:
    """A batch that is being decoded.

    Attributes:
        batch: where its images go.
        unfinished: coefficients and quantizers of the images that the GPU finishes, by their positions.
        errors: of images that failed, by their positions.
        started: the work on it.
    """

    batch: StreamedBatch
    unfinished: dict[int, tuple[Located, np.ndarray]] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)
    started: Started | None = None

    def finish(self) -> TensorListGPU:
        """The images, when all the work was done."""
        from penstock.kernels.cuda.jpeg_pixels import Coefficients, make_pixels
        from penstock.kernels.cuda.launch import Located

        images = self.batch.finish()
        places, jobs = images.pointers().tolist(), []
        for index, (source, quantizers) in sorted(self.unfinished.items()):
            target = Located(places[index], images.shapes[index], np.dtype(np.uint8), images.elements)
            jobs.append(Coefficients(source, target, quantizers))
        make_pixels(jobs)
        return images
