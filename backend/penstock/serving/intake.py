"""`Intake`: extracts the samples from a request's inputs, and supplies samples for omitted inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.serving.requests import InputSpec, Request, RequestError, sample_of, samples_of


class Intake:
    """Extracts samples from a model's requests.

    If a request omits an optional input, its value is taken from the request's parameter of that name; otherwise from the input's
    default; otherwise, if the pipeline's source has ``repeat_last``, from the last request that had the input.

    A control of Triton's sequence batcher has a single value, which applies to all samples.

    If the sample of an input lasts for several runs, the request must have a single sample of this input. Other inputs then have either
    one sample, which is used for all samples of each run, or one for each sample in a run's batch.

    Args:
        inputs: the model's inputs.
        limit: the largest number of samples in a request.
        copies: whether to copy samples; needed if they outlive the request, because its memory is freed with it.
    """

    def __init__(self, inputs: Sequence[InputSpec], limit: int, copies: bool = False) -> None:
        self._inputs = inputs
        self._limit = limit
        self._copies = copies
        self._multi_run = {spec.name for spec in inputs if spec.multi_run}
        self._controls = {spec.name for spec in inputs if spec.is_control}
        self._last: dict[str, list[object]] = {}

    def samples_of(self, request: Request) -> list[list[object]]:
        """Return the samples of each input; samples that the request contains are views of its memory, unless ``copies`` is set.

        Raises:
            RequestError: an input is missing, has the wrong rank, or is too large.
        """
        received: dict[str, list[Any]] = {}
        for spec in self._inputs:
            tensor = request.tensor(spec.name)
            if tensor is not None:
                received[spec.name] = samples_of(tensor, spec)
        if self._copies:
            received = {name: [sample.copy() for sample in samples] for name, samples in received.items()}
        count = self._count(received)
        for name in self._controls & received.keys():
            received[name] = received[name][:1] * count
        samples = [received.get(spec.name) or self._substitute(spec, request, count) for spec in self._inputs]
        for spec in self._inputs:
            if spec.repeats and spec.name in received:
                # Copied, because later requests may use these samples.
                self._last[spec.name] = [sample.copy() for sample in received[spec.name]]
        return samples

    def _count(self, received: Mapping[str, list[object]]) -> int:
        if self._multi_run:
            return self._check_parts(received)
        counts = {len(samples) for name, samples in received.items() if name not in self._controls} or {1}
        if len(counts) != 1:
            raise RequestError(f"the inputs hold different numbers of samples: {sorted(counts)}")
        count = counts.pop()
        if not 0 < count <= self._limit:
            raise RequestError(f"a request must hold from 1 to {self._limit} samples, this one holds {count}")
        return count

    def _check_parts(self, received: Mapping[str, list[object]]) -> int:
        for name, samples in received.items():
            if name in self._multi_run and len(samples) != 1:
                raise RequestError(
                    f"a request to this model must hold one sample, which it processes in parts; this one holds {len(samples)}"
                )
            if len(samples) not in (1, self._limit):
                raise RequestError(
                    f"input '{name}' holds {len(samples)} samples: send one, or {self._limit}, one for each part in a batch"
                )
        return 1

    def _substitute(self, spec: InputSpec, request: Request, count: int) -> list[object]:
        if not spec.optional:
            raise RequestError(f"input '{spec.name}' is missing")
        value = request.parameters.get(spec.name)
        if value is not None:
            return [_parameter(value, spec)] * count
        if spec.default is not None:
            return [spec.default] * count
        last = self._last.get(spec.name)
        if last is None:
            raise RequestError(
                f"input '{spec.name}' is missing, and it has neither a default nor an earlier value to repeat"
            )
        if len(last) not in (1, count):
            raise RequestError(
                f"input '{spec.name}' is missing, and its last value cannot be repeated: it had {len(last)} samples, this request has {count}"
            )
        return last if len(last) == count else last * count


def _parameter(value: object, spec: InputSpec) -> object:
    try:
        return sample_of(value, spec)
    except ValueError as error:
        raise RequestError(f"the parameter '{spec.name}' of the request: {error}") from error
