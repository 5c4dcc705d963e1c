"""The commands of the front door, one file each: its arguments and its run."""
