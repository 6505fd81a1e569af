"""`FedOperator`: what operators that the user's program feeds have in common: they can wait for data, and say what they gave."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.schema.operator import Operator
from penstock.tensors import TensorList


@dataclass(frozen=True)
class Fed:
    """A batch that was fed.

    Attributes:
        batch: the data.
        ticket: by which the one who fed it knows it again.
    """

    batch: TensorList
    ticket: object = None


class FedOperator(Operator):
    """Gives what another part of the program, maybe on another thread, hands to :meth:`feed`.

    Has an argument ``blocking``: whether a run waits until there is something to give.

    Attributes:
        decoding: how what is fed is decoded, if it is: of the plan, as there is no workspace yet.
        lasting: what it is fed may last for several runs, as a video does that is given in sequences.
        taken: the ticket of the batch that the last run gave.
    """

    decoding: Decoding = FREELY
    lasting: ClassVar[bool] = False

    def setup(self) -> None:
        # Held while what was fed changes hands, and told when something was fed.
        self._fed = threading.Condition()
        self.taken: object = None

    def feed(self, batch: TensorList, ticket: object = None) -> None:
        """Adds a batch to be given by a later run, which then has :attr:`taken` its ticket."""
        with self._fed:
            self._add(Fed(batch, ticket))
            self._fed.notify_all()

    @abstractmethod
    def _add(self, fed: Fed) -> None:
        """Keeps a fed batch."""

    @abstractmethod
    def drop(self) -> None:
        """Forgets all that was fed."""

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
