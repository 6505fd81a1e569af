"""The front: a proxy between the network and a Triton that listens on this machine only."""
