"""The product as a person sees it: a real browser on the built page."""
