"""What makes several samples of one: the parts of all samples are a batch of their own, which knows where each is from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32
from penstock.schema import Argument, Workspace
from penstock.tensors import TensorList, TensorListCPU

COUNTS = Argument(
    "counts",
    "int32",
    None,
    "How many parts each sample has: the last output of the operator that made them.",
    required=True,
    tensor=True,
)


def mark_parts(workspace: Workspace, parts: TensorList, counts: Sequence[int]) -> TensorList:
    """Notes from which sample each part is; returns the numbers of parts as a batch of scalars.

    Args:
        workspace: of the operator that made the parts.
        parts: those of all samples, in order.
        counts: of each sample.
    """
    owners = np.repeat(np.arange(len(counts)), counts).tolist()
    positions = workspace.positions
    parts.positions = owners if positions is None else [positions[owner] for owner in owners]
    infos = workspace.inputs[0].source_infos
    if infos:
        parts.source_infos = [infos[owner] for owner in owners]
    numbers = TensorListCPU.of_samples([np.array(count, np.int32) for count in counts], "", INT32, 0)
    numbers.positions = positions
    return numbers


def counts_of(workspace: Workspace) -> list[int]:
    """The number of parts of each sample, by the argument `counts`.

    Raises:
        RuntimeError: it is a constant, or does not hold one number for each sample.
    """
    batch = workspace.arguments.get(COUNTS.name)
    if batch is None or batch.ndim() != 0:
        raise RuntimeError("`counts` is one number for each sample, as the operator that made the parts returns it")
    return [int(np.max(count, initial=0)) for count in batch.samples]


def parts_by_sample(parts: TensorList, counts: Sequence[int]) -> list[list[np.ndarray]]:
    """The parts of each sample.

    Raises:
        RuntimeError: there are more or fewer of them.
    """
    if sum(counts) != len(parts):
        raise RuntimeError(
            f"`counts` tells of {sum(counts)} parts, and the input has {len(parts)}: they are of different operators"
        )
    left = iter(parts.samples)
    return [[next(left) for _ in range(count)] for count in counts]
