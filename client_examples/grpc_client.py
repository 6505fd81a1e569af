"""Sends encoded images over gRPC and prints the outputs.

python client_examples/grpc_client.py digit.png other.jpg
"""

from __future__ import annotations

import tritonclient.grpc as triton

from common import arguments, read_batch, run, show


def main() -> None:
    """Send one request with all files."""
    options = arguments(__doc__ or "", port=8001)
    batch = read_batch(options.files)
    with triton.InferenceServerClient(options.url) as client:
        tensor = triton.InferInput(options.input, batch.shape, "BYTES")
        tensor.set_data_from_numpy(batch)
        result = client.infer(options.model, [tensor], client_timeout=options.timeout)
    names = [output.name for output in result.get_response().outputs]
    show(options.files, {name: result.as_numpy(name) for name in names})


if __name__ == "__main__":
    run(main)
