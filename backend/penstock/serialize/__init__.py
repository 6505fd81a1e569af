"""How pipelines are saved: the readable format, the DALI wire format, upgrades between versions."""
