"""What it costs to give class k to row j: sources that each say how probable it is, weighed and added up."""
