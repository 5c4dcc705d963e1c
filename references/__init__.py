"""What is known: data and prose a cluster expert can edit without reading Python."""
