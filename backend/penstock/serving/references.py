"""`References`: resolves references to files: addresses (URLs), and data URLs with base64, that requests contain instead of files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType
from penstock.serving.fetching import Fetcher, FetchError
from penstock.serving.requests import ByteStrings, InputSpec, Request, RequestError
from penstock.serving.settings import ConfigurationError, Settings

_MAX_CONNECTIONS = 8
_GRACE_SECONDS = 1.0
_ADDRESSES = (b"http://", b"https://")
_DATA = b"data:"
_LONGEST_PREFIX = max(map(len, (*_ADDRESSES, _DATA)))

Strings = list["np.ndarray | Future[bytes]"]


class References:
    """Replaces references by files, in the inputs of a model that may have references.

    The files of all requests of a batch are fetched concurrently.

    Args:
        inputs: the model's inputs.
        settings: the model's settings, which say which inputs may have references, and what may be fetched.
        fetcher: fetches files; by default a fetcher with the limits in the settings.

    Raises:
        ConfigurationError: the settings name something that is not an input, or an input that does not take byte strings.
    """

    def __init__(self, inputs: Sequence[InputSpec], settings: Settings, fetcher: Fetcher | None = None) -> None:
        known = {spec.name for spec in inputs if spec.is_bytes}
        for name in settings.url_inputs:
            if name not in known:
                raise ConfigurationError(
                    f"the parameter 'url_inputs' names '{name}'; inputs of the type TYPE_STRING are: {', '.join(sorted(known)) or 'none'}"
                )
        self._names = frozenset(settings.url_inputs)
        self._max_bytes = settings.max_fetched_bytes
        self._fetcher = fetcher or Fetcher(settings.allowed_hosts, settings.max_fetched_bytes, settings.fetch_seconds)
        self._threads = (
            ThreadPoolExecutor(_MAX_CONNECTIONS, thread_name_prefix="penstock-fetch") if self._names else None
        )

    def resolved(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Return the requests with references replaced by files; the error of a request is raised when its input is read."""
        if not self._names:
            return requests
        return [_Resolved(request, self._begin(request)) for request in requests]

    def close(self) -> None:
        """End the threads that fetch files."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self, request: Request) -> Mapping[str, _Input | Exception]:
        """Start to fetch the files to which the inputs of a request refer."""
        begun: dict[str, _Input | Exception] = {}
        for name in self._names:
            try:
                tensor: Any = request.tensor(name)
                if tensor is not None:
                    items = tensor if isinstance(tensor, list) else tensor.reshape(-1)
                    strings = [self._begin_string(name, number, item) for number, item in enumerate(items)]
                    shape = getattr(tensor, "shape", (len(strings),))
                    begun[name] = _Input(name, strings, shape, self._fetcher.seconds)
            except Exception as error:
                begun[name] = error
        return begun

    def _begin_string(self, name: str, number: int, item: Any) -> np.ndarray | Future[bytes]:
        string = np.frombuffer(item.encode() if isinstance(item, str) else item, np.uint8)
        start = string[:_LONGEST_PREFIX].tobytes().lower()
        if start.startswith(_DATA):
            return np.frombuffer(self._decoded(name, number, string.tobytes()), np.uint8)
        if start.startswith(_ADDRESSES) and self._threads is not None:
            return self._threads.submit(self._fetcher.fetch, string.tobytes().decode("latin-1"))
        return string

    def _decoded(self, name: str, number: int, url: bytes) -> bytes:
        """Decode a data URL (RFC 2397) with base64."""
        head, comma, content = url.partition(b",")
        if not comma or not head.lower().endswith(b";base64"):
            raise _failure(name, number, "a data URL must have the form data:image/jpeg;base64,... here")
        if self._max_bytes is not None and len(content) // 4 * 3 > self._max_bytes + 2:
            raise _failure(name, number, f"the data URL has more bytes than the limit of {self._max_bytes}")
        try:
            return base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise _failure(name, number, f"the data URL is not valid base64: {error}") from error


class _Input:
    """An input with references, some of whose files may still be being fetched."""

    def __init__(self, name: str, strings: Strings, shape: Sequence[int], seconds: float | None) -> None:
        self._name, self._strings, self._shape = name, strings, tuple(shape)
        # In addition to the fetcher's time limit, because it does not apply to the resolution of host names.
        self._patience = None if seconds is None else seconds + _GRACE_SECONDS

    def tensor(self) -> ByteStrings:
        found = ByteStrings(
            np.frombuffer(self._result(number, string), np.uint8) if isinstance(string, Future) else string
            for number, string in enumerate(self._strings)
        )
        found.shape = self._shape
        return found

    def _result(self, number: int, file: Future[bytes]) -> bytes:
        try:
            return file.result(self._patience)
        except FetchError as error:
            raise _failure(self._name, number, str(error)) from error
        except TimeoutError as error:
            raise _failure(self._name, number, "the file did not arrive in time") from error


class _Resolved:
    """A request whose references are replaced by files."""

    def __init__(self, request: Request, inputs: Mapping[str, _Input | Exception]) -> None:
        self._request, self._inputs = request, inputs

    @property
    def id(self) -> str:
        return self._request.id

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._request.parameters

    @property
    def wanted(self) -> Collection[str]:
        return self._request.wanted

    def tensor(self, name: str) -> object:
        given = self._inputs.get(name)
        if isinstance(given, Exception):
            raise given
        return self._request.tensor(name) if given is None else given.tensor()

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> np.ndarray | None:
        return self._request.reserve(name, shape, dtype)

    def trace(self) -> int:
        return self._request.trace()

    def is_cancelled(self) -> bool:
        return self._request.is_cancelled()


def _failure(name: str, number: int, reason: str) -> RequestError:
    return RequestError(f"input '{name}', string {number}: {reason}")
