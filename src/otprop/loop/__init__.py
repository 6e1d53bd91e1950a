"""The labelling loop: which rows to label next, and which given labels look wrong."""
