"""The straggler engine: how it is found out. No terminal here; usable as a library and headless."""
