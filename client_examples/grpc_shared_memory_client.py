"""Sends encoded images over gRPC through system shared memory and prints the outputs.

Only a description of the memory goes over the connection, so the client must run on the server's machine.

    python client_examples/grpc_shared_memory_client.py digit.png other.jpg
"""

from __future__ import annotations

import os

import numpy as np
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shared_memory
from tritonclient.utils import serialize_byte_tensor

from common import arguments, read_batch, run, show


def main() -> None:
    """Send one request with all files."""
    options = arguments(__doc__ or "", port=8001)
    batch = read_batch(options.files)
    # An input of type BYTES travels as each string's length and content, one after the other.
    content = serialize_byte_tensor(batch)
    size = len(content.item())
    name = f"penstock_client_{os.getpid()}"
    region = shared_memory.create_shared_memory_region(name, f"/{name}", size)
    try:
        shared_memory.set_shared_memory_region(region, [np.frombuffer(content.item(), np.uint8)])
        with triton.InferenceServerClient(options.url) as client:
            client.register_system_shared_memory(name, f"/{name}", size, client_timeout=options.timeout)
            try:
                tensor = triton.InferInput(options.input, batch.shape, "BYTES")
                tensor.set_shared_memory(name, size)
                result = client.infer(options.model, [tensor], client_timeout=options.timeout)
            finally:
                client.unregister_system_shared_memory(name)
    finally:
        shared_memory.destroy_shared_memory_region(region)
    names = [output.name for output in result.get_response().outputs]
    show(options.files, {name: result.as_numpy(name) for name in names})


if __name__ == "__main__":
    run(main)
