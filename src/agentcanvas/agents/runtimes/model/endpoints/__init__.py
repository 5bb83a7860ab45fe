"""One module a protocol, each over its vendor's client; none is imported before it is needed."""
