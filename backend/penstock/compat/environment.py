"""DALI's environment variables that have no effect here; a program that sets one gets one warning."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

_MEMORY = "memory is pooled by Penstock's own rules"
_DIRECT = "files are read through the page cache"
_STORAGE = "remote storage is accessed by fsspec, with its own settings"
_WITHOUT_EFFECT = {
    "DALI_BUFFER_GROWTH_FACTOR": _MEMORY,
    "DALI_DEVICE_BUFFER_GROWTH_FACTOR": _MEMORY,
    "DALI_DISABLE_NVML": "NVML is not used",
    "DALI_ENABLE_CSE": "passes are chosen by `Pipeline(passes=...)`",
    "DALI_GCS_ANONYMOUS": _STORAGE,
    "DALI_GCS_ENDPOINT_URL": _STORAGE,
    "DALI_GCS_REQUEST_TIMEOUT_SEC": _STORAGE,
    "DALI_GCS_VERIFY_CHECKSUMS": _STORAGE,
    "DALI_GDS_CHUNK_SIZE": "GPUDirect Storage is not used: files reach a GPU through the host's memory",
    "DALI_HOST_BUFFER_GROWTH_FACTOR": _MEMORY,
    "DALI_HOST_BUFFER_SHRINK_THRESHOLD": _MEMORY,
    "DALI_LOG_FILE": "messages go to Python's logging",
    "DALI_MALLOC_POOL_THRESHOLD": _MEMORY,
    "DALI_NVIMGCODEC_LOG_LEVEL": "messages go to Python's logging",
    "DALI_ODIRECT_ALIGNMENT": _DIRECT,
    "DALI_ODIRECT_CHUNK_SIZE": _DIRECT,
    "DALI_ODIRECT_LEN_ALIGNMENT": _DIRECT,
    "DALI_OPTIMIZE_GRAPH": "passes are chosen by `Pipeline(passes=...)`",
    "DALI_PRELOAD_PLUGINS": "operators compiled for DALI cannot be loaded",
    "DALI_RESTRICT_PINNED_MEM": _MEMORY,
    "DALI_USE_CUDA_MALLOC_ASYNC": _MEMORY,
    "DALI_USE_DEVICE_MEM_POOL": _MEMORY,
    "DALI_USE_NEW_THREAD_POOL": "there is one thread pool",
    "DALI_USE_PINNED_MEM_POOL": _MEMORY,
    "DALI_USE_VMM": _MEMORY,
}
"""Why each variable has no effect. DALI_AFFINITY_MASK has an effect, so it is not listed."""


def warn_of_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Warn of variables that are set but have no effect."""
    found = [f"{name} ({why})" for name, why in _WITHOUT_EFFECT.items() if environment.get(name)]
    if found:
        warnings.warn(f"Environment variables without effect in Penstock: {'; '.join(found)}", stacklevel=3)
