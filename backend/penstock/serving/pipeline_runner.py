"""`PipelineRunner`: runs a pipeline on fed data, and verifies that the outputs were made from this data."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.pipeline import Pipeline
from penstock.runtime import Executor, Result, Watch
from penstock.runtime.batches import Batch
from penstock.runtime.memory import BatchMemory
from penstock.schema import InputOperator
from penstock.schema.workspace import Destination
from penstock.tensors import TensorList

logger = logging.getLogger(__name__)


class MixUpError(PenstockError):
    """A pipeline returned something other than the results for the batch it was fed. These must not reach a client."""


@dataclass(frozen=True)
class Ticket:
    """Identifies a batch that was fed to a source; compared by identity.

    Attributes:
        source: the name of the source operator.
        batch: the number of the batch, from 1.
    """

    source: str
    batch: int


class RebuiltError(PenstockError):
    """The pipeline was rebuilt after a mix-up while a batch was in flight; the batch must be run again."""


@dataclass(slots=True)
class BegunBatch:
    """A batch in flight.

    Attributes:
        executor: the executor that runs the batch.
        batch: the batch.
        count: the batch's number of samples.
        builds: how often the pipeline had been rebuilt when the batch was begun.
    """

    executor: Executor
    batch: Batch
    count: int
    builds: int


class PipelineRunner:
    """Runs a pipeline, and checks that each source returned the data that it was fed.

    One batch may be begun while another thread completes the previous one. After a batch was begun, successfully or not, no
    source has data left. After a mix-up, the pipeline is rebuilt.

    Args:
        pipeline: the pipeline, which nothing else may run or feed.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._batches = self._builds = 0
        # Held while operators run: only the operators of one batch may run at a time.
        self._lock = threading.Lock()

    @property
    def sources(self) -> dict[str, InputOperator]:
        """The pipeline's input operators that outputs need, by name."""
        return self._pipeline.executor.input_operators

    def run(
        self,
        batches: Mapping[str, TensorList],
        count: int,
        watch: Watch | None = None,
        destinations: Mapping[int, Destination] | None = None,
        allowance: BatchMemory | None = None,
    ) -> Result:
        """Return the pipeline's results for a batch; failed samples are in its ``failures``.

        Args:
            batches: the data of each source; other names are ignored.
            count: the number of samples.
            watch: observes the run, and may stop it.
            destinations: buffers for outputs, by the output's number; outputs are written into them if their operators allow it.
            allowance: the memory limit of the batch.

        Raises:
            MixUpError: the outputs were not made from the batch.
            OperatorError: the batch as a whole was rejected.
        """
        return self.complete(self.begin(batches, count, watch, destinations, allowance))

    def begin(
        self,
        batches: Mapping[str, TensorList],
        count: int,
        watch: Watch | None = None,
        destinations: Mapping[int, Destination] | None = None,
        allowance: BatchMemory | None = None,
    ) -> BegunBatch:
        """Begin a batch, which :meth:`complete` completes; for arguments and errors, see :meth:`run`."""
        with self._lock:
            executor, builds = self._pipeline.executor, self._builds
            sources = executor.input_operators
            tickets = self._tickets(sources)
            try:
                for name, source in sources.items():
                    source.feed(batches[name], tickets[name])
                batch = executor.begin_once(True, watch, destinations, allowance)
                if not batch.result.stopped:
                    try:
                        _check_taken(batch.result, tickets, sources)
                    except MixUpError:
                        batch.end()
                        raise
                return BegunBatch(executor, batch, count, builds)
            except MixUpError as error:
                self._rebuild(error)
                raise
            finally:
                self._empty(sources)

    def complete(self, begun: BegunBatch) -> Result:
        """Return the results of a batch; call this in the order in which batches were begun.

        Raises:
            MixUpError, OperatorError: see :meth:`run`.
            RebuiltError: the pipeline was rebuilt since the batch was begun.
        """
        executor = begun.executor
        executor.await_begun(begun.batch)
        with self._lock:
            if begun.builds != self._builds:
                begun.batch.end()
                raise RebuiltError("the pipeline was rebuilt while the batch was in flight")
            result = executor.complete_once(begun.batch)
            if not result.stopped:
                try:
                    _check_counts(result, begun.count)
                except MixUpError as error:
                    self._rebuild(error)
                    raise
        if result.ready is not None:
            result.ready.synchronize()
        return result

    def stream(
        self,
        batches: Mapping[str, TensorList],
        watching: Callable[[int], Watch] | None = None,
        allowing: Callable[[int], BatchMemory] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the pipeline's results for a sample that lasts for several runs, one result for each run, until the sample's
        data ends.

        Args:
            batches: the data of each source: for a source whose sample lasts for several runs, that sample; for any other source,
                either one sample, which is used for all samples of each run, or several, of which a run with n samples uses the
                first n.
            watching: returns the observer of a run, which may stop the run and so the stream; takes the run's number of
                samples.
            allowing: returns the memory limit of a run; takes the run's number of samples.

        Raises:
            MixUpError, OperatorError: see :meth:`run`.
        """
        sources = self.sources
        tickets = self._tickets(sources)
        multi_run = [source for source in sources.values() if source.multi_run]
        try:
            for name, source in sources.items():
                if source.multi_run:
                    source.feed(batches[name], tickets[name])
            while any(source.has_data() for source in multi_run):
                count = self._next_count(multi_run)
                for name, source in sources.items():
                    if not source.multi_run:
                        source.drop()
                        source.feed(_control_batch(batches[name], count), tickets[name])
                watch = watching(count) if watching else None
                allowance = allowing(count) if allowing else None
                result = self._run_part(tickets, count, watch, allowance)
                yield result
                if result.stopped:
                    return
        finally:
            self._empty(sources)

    def _tickets(self, sources: Iterable[str]) -> dict[str, Ticket]:
        self._batches += 1
        return {name: Ticket(name, self._batches) for name in sources}

    def _next_count(self, multi_run: Iterable[InputOperator]) -> int:
        """Return the number of samples in the next run; 1 if a source cannot tell, as its run will fail."""
        pending = [source.pending_batch_size() or 1 for source in multi_run]
        return min(*pending, self._pipeline.executor.max_batch_size)

    def _run_part(
        self, tickets: Mapping[str, Ticket], count: int, watch: Watch | None, allowance: BatchMemory | None
    ) -> Result:
        """Run the pipeline on the next part of the data that its sources were fed, and check the results."""
        try:
            result = self._pipeline.executor.run_once(isolate=True, watch=watch, allowance=allowance)
            if not result.stopped:
                _check_taken(
                    result, tickets, {name: source for name, source in self.sources.items() if not source.multi_run}
                )
                _check_counts(result, count)
        except MixUpError as error:
            self._rebuild(error)
            raise
        return result

    def _rebuild(self, error: MixUpError) -> None:
        """Close the pipeline, so that the next run builds it again."""
        logger.error("%s The pipeline is rebuilt.", error)
        self._close()

    def _close(self) -> None:
        self._builds += 1
        self._pipeline.close()

    def _empty(self, sources: Mapping[str, InputOperator]) -> None:
        for source in sources.values():
            source.drop()
        if any(source.has_data() for source in sources.values()):
            # A source that does not drop its data would return it in the next batch, so the next run must create new sources.
            self._close()


def _control_batch(batch: TensorList, count: int) -> TensorList:
    """Return ``count`` samples: the only sample of a batch, repeated without copying it, or the first samples of a larger batch."""
    samples = list(batch.samples)
    return type(batch).of_samples(samples * count if len(samples) == 1 else samples[:count], batch.layout())


def _check_taken(result: Result, tickets: Mapping[str, Ticket], sources: Mapping[str, InputOperator]) -> None:
    """Raise MixUpError unless each source returned the data that it was fed.

    Args:
        result: the run's result.
        tickets: the tickets of the data that each source was fed.
        sources: the sources that must have no data left.
    """
    for name, ticket in tickets.items():
        returned_ticket = result.taken.get(name)
        if returned_ticket is not ticket:
            raise MixUpError(
                f"'{name}' returned {returned_ticket or 'nothing'} instead of {ticket}: this result answers no request."
            )
        if name in sources and sources[name].waiting:
            raise MixUpError(f"'{name}' has data left after {ticket}: this result answers no request.")


def _check_counts(result: Result, count: int) -> None:
    """Raise MixUpError unless the samples of each output, or their parts, belong to the ``count`` samples that were fed."""
    # If every sample has failed, an operator that derives the types of its outputs from results has empty outputs.
    all_failed = len(result.failures) == count
    for index, batch in enumerate(result.outputs):
        # For parts, the batch records from which sample each was made.
        stray = batch.made_of(0, count) != (0, len(batch))
        if stray and not all_failed:
            raise MixUpError(
                f"Output {index} has {len(batch)} samples where {count} were fed: this result answers no request."
            )
