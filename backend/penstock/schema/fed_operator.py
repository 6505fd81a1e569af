"""`FedOperator`: what operators that the user's program feeds have in common: they can wait for data."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable

from penstock.schema.operator import Operator
from penstock.tensors import TensorList


class FedOperator(Operator):
    """Gives what another part of the program, maybe on another thread, hands to :meth:`feed`.

    Has an argument ``blocking``: whether a run waits until there is something to give.
    """

    def setup(self) -> None:
        # Held while what was fed changes hands, and told when something was fed.
        self._fed = threading.Condition()

    def feed(self, batch: TensorList) -> None:
        """Adds a batch to be given by a later run."""
        with self._fed:
            self._add(batch)
            self._fed.notify_all()

    @abstractmethod
    def _add(self, batch: TensorList) -> None:
        """Keeps a fed batch."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How many batches are waiting to be taken."""

    @abstractmethod
    def has_data(self) -> bool:
        """Whether a run would get something."""

    def wait_for_data(self, cancelled: Callable[[], bool]) -> None:
        """Waits, if the operator is blocking, until there is something to give or the wait is cancelled; see :meth:`wake`."""
        if self.args["blocking"]:
            with self._fed:
                self._fed.wait_for(lambda: self.has_data() or cancelled())

    def wake(self) -> None:
        """Lets those who wait look whether they still should."""
        with self._fed:
            self._fed.notify_all()
