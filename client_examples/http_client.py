"""Sends encoded images over HTTP and prints the outputs.

python client_examples/http_client.py digit.png other.jpg
"""

from __future__ import annotations

import tritonclient.http as triton

from common import arguments, read_batch, run, show


def main() -> None:
    """Send one request with all files."""
    options = arguments(__doc__ or "", port=8000)
    batch = read_batch(options.files)
    with triton.InferenceServerClient(
        options.url, connection_timeout=options.timeout, network_timeout=options.timeout
    ) as client:
        tensor = triton.InferInput(options.input, batch.shape, "BYTES")
        tensor.set_data_from_numpy(batch)
        result = client.infer(options.model, [tensor])
    names = [output["name"] for output in result.get_response()["outputs"]]
    show(options.files, {name: result.as_numpy(name) for name in names})


if __name__ == "__main__":
    run(main)
