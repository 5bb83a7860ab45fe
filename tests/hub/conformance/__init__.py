"""What any broker has to do. To hold another one to it, add it to ``harnesses.HARNESSES``."""
