"""Builds one extension module for each instruction set level (see levels.py)."""

import os
import sys

from setuptools import setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from levels import LEVELS

setup(cffi_modules=[f"levels.py:{level}" for level in LEVELS])
