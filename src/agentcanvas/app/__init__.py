"""Settings and assembly: the only place that picks concrete parts.

Everything below takes what it needs as an argument; here the arguments are chosen.
"""
