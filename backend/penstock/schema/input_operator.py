"""`InputOperator`: the base class of operators whose data the program feeds, such as `external_source`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.schema.operator import Operator
from penstock.tensors import TensorList


class FedBatch(NamedTuple):
    """A batch that was fed to an operator.

    Attributes:
        batch: the data.
        ticket: an object by which the code that fed the batch recognizes it.
    """

    batch: TensorList
    ticket: object = None


class InputOperator(Operator):
    """Returns the batches that another part of the program passes to :meth:`feed`, possibly on another thread.

    The operator's argument ``blocking`` determines whether a run waits for data.

    Attributes:
        decoding: how fed data are decoded, if at all. Set by the plan, as there is no workspace yet when data are fed.
        multi_run: whether one fed batch may supply several runs, like a video that is returned in sequences.
        taken: the ticket of the batch that the last run returned.
    """

    decoding: Decoding = FREELY
    multi_run: ClassVar[bool] = False

    def setup(self) -> None:
        # Guards the fed batches. For each batch, the lock is acquired directly, which is faster than through the condition below.
        self._lock = threading.RLock()
        self._data_available = threading.Condition(self._lock)
        self.taken: object = None

    def feed(self, batch: TensorList, ticket: object = None) -> None:
        """Queue a batch for a later run, which then sets :attr:`taken` to ``ticket``."""
        with self._lock:
            self._add(FedBatch(batch, ticket))
            if self.args["blocking"]:
                # Only runs of blocking operators wait for data.
                self._data_available.notify_all()

    @abstractmethod
    def _add(self, fed: FedBatch) -> None:
        """Queue a fed batch."""

    @abstractmethod
    def drop(self) -> None:
        """Discard all batches that were fed."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """The number of queued batches."""

    @abstractmethod
    def has_data(self) -> bool:
        """Return whether a run would find data."""

    def wait_for_data(self, cancelled: Callable[[], bool]) -> None:
        """Wait for data if the operator is blocking, until ``cancelled`` returns true; see :meth:`wake`."""
        if self.args["blocking"]:
            with self._data_available:
                self._data_available.wait_for(lambda: self.has_data() or cancelled())

    def wake(self) -> None:
        """Make waiting threads check whether they have been cancelled."""
        with self._data_available:
            self._data_available.notify_all()
