"""AWS: the closed list of operations, the guarded clients, what their errors mean, and HyperPod's answers as plain facts."""
