"""What leaves a session: JSON and text."""
