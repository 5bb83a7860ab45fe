"""Ways to keep and pass on mail, each fulfilling ``hub.broker``; ``app`` picks one.

What a message means, and who may send it, is decided before it comes here.
"""
