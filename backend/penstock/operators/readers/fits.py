"""`experimental.readers.fits`: reads arrays from astronomical FITS files."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from penstock.data_types import NO_TYPE, numpy_dtype
from penstock.errors import LimitError
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.operators.readers._paths import PathReader, path_arguments
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS
from penstock.schema import Argument, OutputSpec, Sample, Schema, register_operator
from penstock.schema.libraries import ASTROPY


@register_operator
class Fits(PathReader):
    """Returns the image of each selected header-data unit, decompressed and scaled according to its header.

    >>> images = fn.experimental.readers.fits(file_root="sky", hdu_indices=[1])  # doctest: +SKIP
    """

    schema = Schema(
        name="experimental__readers__Fits",
        devices=("cpu", "gpu"),
        needs=(ASTROPY,),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            *path_arguments("*.fits"),
            Argument("dtypes", "DALIDataType[]", None, "Types of the outputs; by default those of the files."),
            Argument("hdu_indices", "int32[]", [2], "The units to read, one for each output; the first is 1."),
        ),
        outputs=lambda arguments: len(arguments.get("hdu_indices", [2])),
        random=True,
        stateful=True,
    )

    decodes = True

    def setup(self) -> None:
        units, dtypes = self.args["hdu_indices"], self.args["dtypes"]
        if any(unit < 1 for unit in units):
            raise ValueError(f"Illegal HDU number: `hdu_indices` count from 1, got {units}")
        if dtypes is not None and len(dtypes) != len(units):
            raise ValueError(
                f"Number of extensions does not match the number of provided types: {len(units)} and {len(dtypes)}"
            )
        super().setup()

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(NO_TYPE)] * len(self.args["hdu_indices"])

    def read(self, item: str) -> list[np.ndarray]:
        return self._read(item, UNLIMITED)

    def read_sample(self, item: str, sample: Sample) -> list[np.ndarray]:
        return self._read(item, sample.workspace.decoding.limits)

    def _read(self, item: str, limits: Limits) -> list[np.ndarray]:
        try:
            from astropy.io import fits
        except ImportError as error:
            raise ImportError(f"astropy is needed to read '{item}': pip install astropy") from error

        content = io.BytesIO(self.files.read(self.path(item)).tobytes())
        try:
            with fits.open(content) as file:
                arrays = [_image(file, unit, item, limits) for unit in self.args["hdu_indices"]]
        except (_UnitError, LimitError):
            raise
        except Exception as error:
            # For damaged files, astropy raises exceptions of almost any class.
            raise ValueError(f"'{item}' cannot be read: {error}") from error
        dtypes = self.args["dtypes"]
        return arrays if dtypes is None else [_as(array, numpy_dtype(t)) for array, t in zip(arrays, dtypes)]


class _UnitError(ValueError):
    """The error for a unit that is missing or not an image."""


def _image(file: Any, unit: int, item: str, limits: Limits) -> np.ndarray:
    if unit > len(file):
        raise _UnitError(f"'{item}' has {len(file)} header-data units, but unit {unit} was requested")
    if file[unit - 1].is_image:
        bits = abs(int(file[unit - 1].header.get("BITPIX", 8)))
        limits.check_bytes(math.prod(file[unit - 1].shape) * bits // 8, f"Unit {unit} of '{item}'")
    data = file[unit - 1].data
    if data is None or data.dtype.names:
        raise _UnitError(f"Unit {unit} of '{item}' is not an image")
    # Convert from FITS's byte order, big-endian.
    return np.array(data, data.dtype.newbyteorder("="))


def _as(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype == dtype:
        return array
    from penstock.kernels.cpu.casting import cast

    converted = np.empty(array.shape, dtype)
    cast(array, converted)
    return converted
