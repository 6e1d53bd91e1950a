"""Pages and pictures that a run leaves behind."""
