"""One file a coding CLI: what is known of it, how it is asked, and what its stream means.

None knows another; each exports ``ADAPTER``. The machinery is in ``agents.cli``.
"""
