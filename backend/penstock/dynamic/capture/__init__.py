"""Captured loops: the operations of the first step become a pipeline, which computes later steps ahead of time.

``reader.next_epoch(batch_size=32, capture=True)`` and ``source.captured(batch_size=32)`` make a loop a captured one. Its body needs no
changes, and its results are the same::

    for encoded, labels in reader.next_epoch(batch_size=32, capture=True):
        images = dynamic.decoders.image(encoded)
        images = dynamic.resize(images, size=[224, 224])
        train(images.torch(), labels.torch())

A call gets its result from the pipeline if it equals a call in the first step: it has the same operator and equal arguments, and its inputs
are results of the same calls. Other calls run as they do without capture.

:func:`pipeline` makes a pipeline from a function, which can then be saved and served.
"""

from __future__ import annotations

from penstock.dynamic._invariants import invariant
from penstock.dynamic._tracing import pipeline

__all__ = ["invariant", "pipeline"]
