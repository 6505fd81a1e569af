"""Sends encoded images over gRPC with asyncio, one concurrent request for each, and prints the outputs.

The server gathers the requests that arrive together into one batch.

    python client_examples/grpc_asyncio_client.py digit.png other.jpg
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import tritonclient.grpc.aio as triton

from common import arguments, read_batch, run, show


async def main() -> None:
    """Send one request for each file, all in flight together."""
    options = arguments(__doc__ or "", port=8001)
    async with triton.InferenceServerClient(options.url) as client:

        async def ask(file: Path) -> dict[str, np.ndarray]:
            batch = read_batch([file])
            tensor = triton.InferInput(options.input, batch.shape, "BYTES")
            tensor.set_data_from_numpy(batch)
            result = await client.infer(options.model, [tensor], client_timeout=options.timeout)
            return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}

        answers = await asyncio.gather(*(ask(file) for file in options.files))
    for file, outputs in zip(options.files, answers):
        show([file], outputs)


if __name__ == "__main__":
    run(lambda: asyncio.run(main()))
