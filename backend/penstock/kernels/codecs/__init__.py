"""Reading and decoding encoded images, for the decoders: headers, pixels on the CPU, pixels on the GPU."""
