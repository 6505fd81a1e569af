"""The front: a proxy between the network and Triton, which listens on this machine only."""
