"""`python -m harness` is the `harness` command, for use from a checkout."""

from harness.cli.main import main

main()
