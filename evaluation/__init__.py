"""The documents' figures, regenerated: every published number beside ours, and real tasks beside their peers."""
