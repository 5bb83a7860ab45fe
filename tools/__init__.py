"""Small programs for contributors, run by make targets. Nothing here is shipped."""
