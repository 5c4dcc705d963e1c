"""Pairwise bandwidth: read what tools printed, lay it out as a matrix, say who is to blame and how sure, plan the next pairs."""
