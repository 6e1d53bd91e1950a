"""The paper's experiment: data, protocol, scores, tables."""
