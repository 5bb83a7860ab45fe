"""One module a kind of runtime; none knows another, and only ``app`` imports them."""
