"""Captured outputs read without a cluster: what a file is, what stands in it, and what that means."""
