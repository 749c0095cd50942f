"""Run folders of the report's tests, for the tests that read them."""

from tests.report.conftest import made, runs

__all__ = ["made", "runs"]
