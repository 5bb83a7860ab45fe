"""What is promised of working together, over every way there is."""
