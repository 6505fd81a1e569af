"""The synthetic data with which pipelines are tried before they are served."""

from __future__ import annotations

from penstock.kernels.cpu.jpeg.files import decode_file
from penstock.serving.probing import probe
from penstock.serving.warming import usual
from penstock.types import FLOAT


def test_the_usual_pipeline_is_known_and_warm_after_a_probe() -> None:
    (output,) = probe(usual())
    assert (output.dtype, output.dims) == (FLOAT, (3, 224, 224))
    assert decode_file.signatures
