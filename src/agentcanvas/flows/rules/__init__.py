"""What the parts of a flow may not be together, one noun a file.

Each rule is a generator of problems over the sound parts of a flow; places in the file are added by
``check``.
"""
