"""Columns of a table to feature vectors, and its target column to labels."""
