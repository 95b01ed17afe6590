"""Packages of the wheel. The folders of problems, prompts, recordings, exploits and examples lie at the top of the
checkout and are installed as data of `harness.data`; everything else about the project is in pyproject.toml."""

from setuptools import find_packages, setup

DATA = {
    "harness.data.reference_models": "reference_models",
    "harness.data.prompts": "prompts",
    "harness.data.recordings": "recordings",
    "harness.data.redteam_corpus": "redteam_corpus",
    "harness.data.examples": "examples",
}

setup(packages=[*find_packages(include=["harness", "harness.*"]), *DATA], package_dir=DATA)
