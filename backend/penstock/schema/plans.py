"""Plans, which operators derive from shapes and arguments before they compute. The plans of many samples are stored as columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import TypeVar

    Plan = TypeVar("Plan", default=Any)
else:
    from typing import TypeVar

    Plan = TypeVar("Plan")


@dataclass(eq=False)
class PlanColumns(Sequence[Plan]):
    """The plans of many samples as a structure of arrays: ``plans[row]`` is the plan of one sample.

    A field is an array or a list with an entry for each sample, nested columns, or a value that all samples share.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abstractmethod
    def row(self, number: int) -> Plan:
        """Return the plan of one sample."""

    @overload
    def __getitem__(self, rows: int) -> Plan: ...

    @overload
    def __getitem__(self, rows: slice) -> Sequence[Plan]: ...

    def __getitem__(self, rows: int | slice) -> Plan | Sequence[Plan]:
        if isinstance(rows, slice):
            return [self.row(number) for number in range(*rows.indices(len(self)))]
        if not -len(self) <= rows < len(self):
            raise IndexError(f"There is no row {rows}: there are plans for {len(self)} samples")
        return self.row(rows % len(self))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the concatenated plans of all parts."""
        columns = {column.name: _joined([getattr(part, column.name) for part in parts]) for column in fields(cls)}
        return cls(**columns)


@dataclass(eq=False)
class NoPlans(PlanColumns[None]):
    """Plans for samples that need none, as types, shapes and constant arguments determine how they are computed.

    Attributes:
        samples: the number of samples.
    """

    samples: int

    def __len__(self) -> int:
        return self.samples

    def row(self, number: int) -> None:
        return None

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        return cls(sum(map(len, parts)))


class OwnPlan(Generic[Plan]):
    """The plan of one sample, or of several equal samples."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


class PlanRow(Generic[Plan]):
    """A row of :class:`PlanColumns`; the plan is created on first use."""

    __slots__ = ("_number", "_plan", "_plans")

    def __init__(self, plans: PlanColumns[Plan], number: int) -> None:
        self._plans = plans
        self._number = number
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """The plan; always the same object."""
        plan = self._plan
        if plan is None:
            plan = self._plan = self._plans.row(self._number)
        return plan


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, PlanColumns):
        return first.joined(parts)
    return [row for part in parts for row in part] if isinstance(first, list) else first


# The type parameters of operators: the state that `describe` stores for the batch, the plan of one sample, and the plans
# of many samples if the operator implements `infer_batch`. Only type checkers see their defaults.
if TYPE_CHECKING:
    State = TypeVar("State", default=Any)
    Plans = TypeVar("Plans", bound=PlanColumns[Any], default=Any)
else:
    State, Plans = TypeVar("State"), TypeVar("Plans")
