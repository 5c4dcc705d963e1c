"""Widgets that own one thing each."""
