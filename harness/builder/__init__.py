"""Builds the extensions that candidates request, each at most once."""

from harness.builder.builder import Builder, default_cache_folder, find_machine_folder
from harness.builder.toolchain import Toolchain, probe_toolchain
