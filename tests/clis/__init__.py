"""Real programs against the model server; see ``tools/clis.sh``. And what they have printed."""
