"""Samples that are planned together, in arrays with a row for each; see :class:`Sample` for a single one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from penstock.schema.arguments import Argument
from penstock.schema.outputs import Shape
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.workspace import HasArguments, Workspace
from penstock.tensors import TensorListCPU

Derived = TypeVar("Derived")
_Given = ParamSpec("_Given")


def values_of(argument: Argument, batch: TensorListCPU, indices: Sequence[int]) -> np.ndarray:
    """Return the values that a tensor has for an argument, with a row for each of some samples.

    Raises:
        ValueError: the samples have different numbers of values.
    """
    shapes, elements = batch.shapes, batch.elements
    count = len(shapes)
    if elements is None and len(indices) == count > 1 and batch.is_dense_tensor():
        elements = batch.contiguous_elements()
    if elements is not None and len(indices) == count > 0 and shapes.count(shapes[0]) == count:
        argument.check_tensor(shapes[0], batch.dtype, elements.dtype)
        rows: np.ndarray = elements.reshape(count, -1)
        return rows
    values = [argument.from_tensor(batch.samples[index], batch.dtype) for index in indices]
    return np.array(values, np.float64).reshape(len(indices), -1)


class Samples(Generic[State, Plan, Plans]):
    """Samples of a batch that are planned together, in arrays with a row for each.

    Attributes:
        workspace: the batch's workspace.
        indices: the positions of the samples in the batch.
    """

    __slots__ = ("_operator", "indices", "workspace")

    def __init__(
        self, operator: HasArguments, workspace: Workspace[State, Plan, Plans], indices: Sequence[int]
    ) -> None:
        self._operator = operator
        self.workspace = workspace
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def state(self) -> State:
        """The state that ``describe`` stored for the batch."""
        return self.workspace.state

    @property
    def are_all(self) -> bool:
        """Whether these are all samples of the batch."""
        return len(self.indices) == self.workspace.batch_size

    def of(self, rows: Sequence[object]) -> Sequence[Any]:
        """Return the entries of these samples in a list that has an entry for each sample of the batch."""
        return rows if self.are_all else [rows[index] for index in self.indices]

    def shape_list(self, number: int = 0) -> list[Shape]:
        """Return the shapes of an input, for operators that change little about them."""
        return list(self.of(self.workspace.inputs[number].shapes))

    def shapes(self, number: int = 0) -> np.ndarray:
        """Return the shapes of an input, int64 of shape (samples, dimensions)."""
        batch = self.workspace.inputs[number]
        if len(self.indices) == len(batch.shapes):
            shapes: np.ndarray = batch.shape_array()
            return shapes
        return np.array(self.of(batch.shapes), np.int64).reshape(len(self), -1)

    def given(self, name: str) -> bool:
        """Return whether the user passed the argument, as a constant or as a tensor."""
        return name in self.workspace.arguments or name in self._operator.explicit

    def derived(
        self,
        names: Collection[str],
        key: Hashable,
        work: Callable[_Given, Derived],
        *args: _Given.args,
        **named: _Given.kwargs,
    ) -> Derived:
        """Return the result of ``work(*args, **named)``; it is cached across batches if the arguments ``names`` are constant.

        The result must depend only on these arguments and on ``key``.
        """
        if not self.workspace.arguments.keys().isdisjoint(names):
            return work(*args, **named)
        known = self._operator.known
        if key not in known:
            known[key] = work(*args, **named)
        derived: Derived = known[key]
        return derived

    def constant(self, name: str) -> Any:
        """Return the value of a constant argument."""
        return self._operator.args[name]

    def values(self, name: str) -> np.ndarray:
        """Return the values of a numeric argument, float64 of shape (samples, values) or, if it is constant, (1, values).

        Raises:
            ValueError: samples have different numbers of values.
        """
        batch = self.workspace.arguments.get(name)
        if batch is None:
            return self._operator.constant_values(name)
        argument = self._operator.schema.all_arguments[name]
        return values_of(argument, batch, self.indices).astype(np.float64, copy=False)

    def lists(self, name: str) -> list[Any]:
        """Return the value of an argument for each sample, in the same form as from :class:`Sample`."""
        batch = self.workspace.arguments.get(name)
        if batch is None:
            return [self.constant(name)] * len(self)
        argument = self._operator.schema.all_arguments[name]
        return [argument.from_tensor(batch.samples[index], batch.dtype) for index in self.indices]

    def scalars(self, name: str) -> np.ndarray:
        """Return the single value of a numeric argument for each sample, float64 of shape (samples,) or, if it is constant, (1,)."""
        return self.values(name)[:, 0]

    def per_axis(self, name: str, count: int) -> np.ndarray:
        """Return the values of a numeric argument for ``count`` axes, float64: a row for each sample or, if it is constant, one row.

        A single value, constant or computed in the graph, applies to all axes.

        Raises:
            RuntimeError: there are neither one nor ``count`` values.
        """
        values, computed = self.values(name), self.workspace.arguments.get(name)
        if values.shape[1] == 1 and (computed is None or not computed.ndim()):
            return values.repeat(count, axis=1)
        if values.shape[1] != count:
            raise RuntimeError(
                f'Argument "{name}" expects either a single value or a list of {count} elements. {values.shape[1]} given.'
            )
        return values

    def tensors(self, name: str) -> np.ndarray | None:
        """Return the stacked arrays of a tensor argument; None if the argument is constant or absent.

        Raises:
            ValueError: the shapes of the arrays differ.
        """
        batch = self.workspace.arguments.get(name)
        return None if batch is None else np.array(self.of(batch.samples))
