"""The base class of encoders, which turn each sample into a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.operators.postprocessing._rows import Rows, RowsOperator, Tables
from penstock.schema import Sample, Samples


class FileEncoder(RowsOperator):
    """Base class of encoders. The length of a file is known only after encoding, so samples are encoded during shape inference, on the
    pool's threads.
    """

    def encode(self, sample: Sample) -> np.ndarray:
        """Encode a sample; return the file's bytes, uint8 of shape (bytes,)."""
        raise NotImplementedError(f"{type(self).__name__} must implement `encode`")

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        workspace = samples.workspace
        given: list[Sample] = [Sample(self, workspace, index) for index in samples.indices]
        files: list[np.ndarray] = [np.empty(0, np.uint8)] * len(given)

        def task(number: int) -> None:
            files[number] = self.encode(given[number])

        workspace.parallel(task, len(given), [math.prod(sample.shapes[0]) for sample in given])
        plans = Rows([np.concatenate(files)], np.array([[len(file)] for file in files], np.int64))
        return plans.shapes(), plans
