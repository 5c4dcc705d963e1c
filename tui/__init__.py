"""The terminal UI: how straggler shows what the engine found. No diagnosis lives here."""
