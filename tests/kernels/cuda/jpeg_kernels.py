"""Launches single kernels of the JPEG decoder."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cpu.jpeg.entropy import NATURAL_ORDER
from penstock.kernels.cuda import jpeg_codes, jpeg_pixels
from penstock.kernels.cuda.launch import KernelLaunch, Located, launch_all, upload
from penstock.kernels.cuda.structs import blank_records


def read_codes(scans: JpegScans, data: Located, targets: np.ndarray, expected: np.ndarray) -> Located:
    """Launch the kernel that writes the coefficients of a batch to ``targets``; return the states of the images. ``expected``: the states
    before the launch.
    """
    count = len(scans)
    states, turns = upload([expected, np.zeros_like(expected)])
    rows, blocks = blank_records(jpeg_codes._JpegScan, count), np.empty(count, np.int64)
    jpeg_codes.describe_scans(scans.memory, data.address, targets.astype(np.int64), rows.rows, blocks)
    kernel = jpeg_codes.SOURCE.kernel("read_codes")
    launch_all([KernelLaunch(kernel, rows, blocks, (NATURAL_ORDER, states, turns), jpeg_codes.SHARED_BYTES)])
    return states


def make_pixels(
    scans: JpegScans,
    data: int,
    addresses: tuple[np.ndarray, np.ndarray, np.ndarray],
    windows: np.ndarray,
    channels: int,
    reverse: bool = False,
    smooth: bool = True,
) -> None:
    """Launch the kernels that compute windows of images from coefficients.

    Args:
        addresses: for each image, the addresses of the coefficients, of the memory for samples, and of the pixels.
    """
    count = len(scans)
    rows, blocks = blank_records(jpeg_pixels._JpegImage, count), np.empty((2, count), np.int64)
    sources, planes, targets = (own.astype(np.int64) for own in addresses)
    where = sources, planes, targets, windows
    jpeg_pixels.describe_images(scans.memory, data, *where, channels, smooth, rows.rows, *blocks)
    transform, convert = map(jpeg_pixels.SOURCE.kernel, ("transform_blocks", "convert_pixels"))
    launch_all([KernelLaunch(transform, rows, blocks[0]), KernelLaunch(convert, rows, blocks[1], (np.int32(reverse),))])
