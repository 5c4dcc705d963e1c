"""Where nodes come from: hosts (SSH), this machine, the demo."""
