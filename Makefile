# Shortcuts for the script ./run, which needs no make.
.PHONY: demo test lint ci

demo:
	./run demo

test:
	./run test

lint:
	ruff check .
	ruff format --check .
	mypy

ci:
	.ci/run
