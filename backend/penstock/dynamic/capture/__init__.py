"""Captured loops: the operations of their first step become a pipeline, which computes the later steps ahead.

``reader.next_epoch(batch_size=32, capture=True)`` and ``source.captured(batch_size=32)`` make a loop a captured one. Its body
stays as it is, and so do its results::

    for encoded, labels in reader.next_epoch(batch_size=32, capture=True):
        images = dynamic.decoders.image(encoded)
        images = dynamic.resize(images, size=[224, 224])
        train(images.torch(), labels.torch())

A call has the pipeline's result if it is the same as one in the first step: the same operator, on the results of the same
calls, with equal arguments. Other calls run as they do without capture.

:func:`pipeline` makes a pipeline of a function, to be saved and served.
"""

from __future__ import annotations

from penstock.dynamic._invariants import invariant
from penstock.dynamic._tracing import pipeline

__all__ = ["invariant", "pipeline"]
