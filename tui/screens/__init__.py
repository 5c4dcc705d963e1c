"""Whole-screen views; each owns its panes and speaks to the app by messages."""
