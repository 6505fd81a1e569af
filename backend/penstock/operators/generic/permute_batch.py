"""`permute_batch`: reorders the samples of a batch."""

from __future__ import annotations

from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator


@register_operator
class PermuteBatch(Operator):
    """Returns the samples in another order, without a copy: output sample i is input sample ``indices[i]``.

    >>> others = fn.permute_batch(images, indices=fn.batch_permutation())
    """

    schema = Schema(
        name="PermuteBatch",
        moves_elements=True,
        inputs=(Input("input", doc="Data of any type and shape."),),
        arguments=(
            Argument(
                "indices",
                "int32[]",
                None,
                "For each sample, the index of the sample that replaces it: a list as long as the batch, or one "
                "computed number per sample.",
                required=True,
                tensor=True,
                example=[2, 0, 1],
            ),
        ),
        batchwise=True,
        exempt={
            "tensor arguments": "a constant names a sample for each, a tensor one a sample",
            "empty batch": "its example has an index for each sample",
        },
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        count = len(batch)
        # A conditional branch may get no samples; constant indices then are ignored instead of refused.
        indices = self._indices(workspace) if count else []
        if len(indices) != count:
            raise RuntimeError(f"{len(indices)} indices were given for a batch of {count} samples")
        failed = dict(workspace.failures)
        for sample, index in enumerate(indices):
            if not 0 <= index < count:
                raise IndexError(
                    f"Sample index out of range. indices[{sample}] = {index} is not a valid index for an input batch of {count} tensors."
                )
            if index in failed and sample not in failed:
                workspace.fail(sample, failed[index])
        workspace.outputs = [batch.subset(indices)]

    def _indices(self, workspace: Workspace) -> list[int]:
        computed = workspace.arguments.get("indices")
        if computed is None:
            return self.args["indices"]
        argument = self.schema.all_arguments["indices"]
        indices = [argument.from_tensor(sample, computed.dtype) for sample in computed.samples]
        if computed.ndim() or any(len(index) != 1 for index in indices):
            raise RuntimeError("A computed `indices` must be one number per sample, as returned by `batch_permutation`")
        return [index[0] for index in indices]
