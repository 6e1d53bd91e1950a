"""Evidence about the class of each row: sources of class probabilities, weighted on held-out labels."""
