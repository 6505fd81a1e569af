"""How pipelines are saved: the readable format, DALI's wire format, upgrades between versions."""
