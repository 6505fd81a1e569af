"""`batch_permutation`: a random permutation of the batch."""

from __future__ import annotations

from penstock.data_types import INT32
from penstock.kernels.random_streams import bounded, philox, std_shuffle
from penstock.schema import Argument, OutputSpec, Schema, Workspace, register_operator
from penstock.schema.random_operator import RandomOperator


@register_operator
class BatchPermutation(RandomOperator):
    """Returns a random permutation of the batch: for each sample an index, the argument `indices` of :func:`fn.permute_batch`.

    >>> others = fn.permute_batch(images, indices=fn.batch_permutation())
    """

    schema = Schema(
        name="BatchPermutation",
        devices=("cpu",),
        arguments=(
            Argument("_scope", "int32", 0, "Follows the batch of a conditional branch.", tensor=True, hidden=True),
            Argument(
                "allow_repetitions", "bool", False, "Draw each sample's index independently, so that some may repeat."
            ),
            Argument(
                "no_fixed_points", "bool", False, "No sample gets its own index, unless the batch has only one sample."
            ),
        ),
        random=True,
        stateful=True,
        batchwise=True,
    )

    def run_batch(self, workspace: Workspace) -> None:
        batch = workspace.allocate([()] * workspace.batch_size, OutputSpec(INT32, ndim=0))
        batch.contiguous_elements()[:] = self._indices(workspace)
        workspace.outputs = [batch]

    def _indices(self, workspace: Workspace) -> list[int]:
        count = workspace.batch_size
        if not count:
            return []
        draws = philox(self.stream_of(workspace, 0))
        fixed_points = not self.args["no_fixed_points"] or count == 1
        if self.args["allow_repetitions"]:
            if fixed_points:
                return [bounded(draws, count) for _ in range(count)]
            others = (bounded(draws, count - 1) for _ in range(count))
            return [other + (other >= own) for own, other in enumerate(others)]
        if fixed_points:
            return std_shuffle(range(count), draws)
        order = list(range(count))
        for i in range(count - 1):
            j = i + 1 + bounded(draws, count - 1 - i)
            order[i], order[j] = order[j], order[i]
        return order
