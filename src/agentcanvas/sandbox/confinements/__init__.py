"""The back-ends of ``agentcanvas.sandbox.confine``, one file each; ``pick`` alone chooses."""
