"""``Device``: where data are, and where operators run."""

from __future__ import annotations

import threading
from typing import Protocol

from penstock.tensors import cuda


class HasDLPackDevice(Protocol):
    """An object of any library that tells on which device its data are."""

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _Entered(threading.local):
    """The devices that a thread has entered, and for each the CUDA device that was current before."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.before: list[int] = []


_entered = _Entered()


def default_device_type() -> str:
    """Return ``gpu`` if a GPU can be used, otherwise ``cpu``."""
    return "gpu" if cuda.device_count() else "cpu"


class Device:
    """The CPU, or one GPU. Inside its context, the device is the thread's current one.

    Args:
        name: ``cpu``, ``gpu`` (or ``cuda``); or with a number, such as ``gpu:1``.
        device_id: the number of the GPU; by default that of the thread's current GPU.

    Raises:
        ValueError: there is no such device.
        DeviceError: a GPU was requested, but none can be used.
    """

    CPU: Device

    def __init__(self, name: str, device_id: int | None = None) -> None:
        kind, _, number = name.partition(":")
        if number and device_id is not None:
            raise ValueError(f"Invalid device name: '{name}' with device_id={device_id}: give the number once")
        if number:
            device_id = _number(name, number)
        kind = "gpu" if kind == "cuda" else kind
        if kind not in ("cpu", "gpu"):
            raise ValueError(f"Invalid device type: '{kind}'. Use 'cpu', 'gpu' or 'gpu:<number>'.")
        if device_id is not None:
            _check_number(kind, device_id)
        self.device_type = kind
        self.device_id = Device.default_device_id(kind) if device_id is None else device_id

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """Return the number of the thread's current GPU; None for the CPU."""
        if device_type == "cpu":
            return None
        return int(cuda.require_cupy("the device").cuda.Device().id)

    @staticmethod
    def current() -> Device:
        """Return the device that this thread entered last; if none, a GPU if there is one, otherwise the CPU."""
        return _entered.devices[-1] if _entered.devices else Device(default_device_type())

    @staticmethod
    def type_from_dlpack(dev_type: int) -> str:
        """Return the name of a kind of device, given DLPack's number."""
        names = {1: "cpu", 2: "gpu"}
        if int(dev_type) not in names:
            raise ValueError(f"Unsupported device type: {dev_type}")
        return names[int(dev_type)]

    @staticmethod
    def from_dlpack(dlpack_device: HasDLPackDevice) -> Device:
        """Return the device of an object with ``__dlpack_device__``."""
        kind, number = dlpack_device.__dlpack_device__()
        name = Device.type_from_dlpack(kind)
        return Device(name, None if name == "cpu" else number)

    def __enter__(self) -> Device:
        if self.device_type == "gpu":
            runtime = cuda.require_cupy("the device").cuda.runtime
            before = runtime.getDevice()
            runtime.setDevice(self.device_id)
            _entered.before.append(before)
        _entered.devices.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.devices.pop()
        if self.device_type == "gpu":
            cuda.require_cupy("the device").cuda.runtime.setDevice(_entered.before.pop())

    def __str__(self) -> str:
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self.device_type == other.device_type and self.device_id == other.device_id

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))


def _number(name: str, number: str) -> int:
    try:
        return int(number)
    except ValueError:
        raise ValueError(f"Invalid device name: '{name}': '{number}' is not a number") from None


def _check_number(kind: str, device_id: int) -> None:
    count = cuda.device_count() if kind == "gpu" else 0
    if not 0 <= device_id < count:
        found = f"this machine has {count}" if kind == "gpu" else "the CPU has none"
        raise ValueError(f"Invalid device id: {device_id} for device type '{kind}': {found}")


Device.CPU = Device("cpu")
# The values that :func:`device` accepts, in addition to devices of PyTorch.
DeviceLike = Device | str


def device(obj: object, id: int | None = None) -> Device | None:
    """Return the device for ``obj``: a :class:`Device`, a name, or a device of PyTorch; None for None."""
    if obj is None:
        return None
    if isinstance(obj, str):
        return Device(obj, id)
    if id is not None:
        raise ValueError(f"`id` can only be passed with the name of a device, got {obj!r}")
    if isinstance(obj, Device):
        return obj
    kind, number = getattr(obj, "type", None), getattr(obj, "index", None)
    if type(obj).__module__ == "torch" and isinstance(kind, str):
        return Device(kind, number)
    raise TypeError(f"Expected a Device, a name or a torch.device, got {type(obj).__name__}")
