.PHONY: demo test lint speed convergence finding clean
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

demo: $(VENV)/.demo-ready  ## label Iris from a few labels, show the rounds and write a picture of them
	$(RUN) examples/label_iris.py

test: lint  ## lint, type-check and run all tests
	$(RUN) -m pytest -q

lint: $(VENV)/.test-ready
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

speed: $(VENV)/.test-ready  ## time and memory beside POT, written to benchmarks/results
	$(RUN) benchmarks/speed.py

convergence: $(VENV)/.test-ready  ## the solver in every round on the seven data sets, written to benchmarks/results
	$(RUN) benchmarks/convergence.py

finding: $(VENV)/.test-ready  ## the paper's figures beside what its equations give, written to benchmarks/results
	$(RUN) benchmarks/published_method.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-ready: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.test-ready: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
