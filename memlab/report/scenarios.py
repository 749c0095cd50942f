"""Former name of ``python -m memlab.scenarios.report``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("memlab.scenarios.report", run_name="__main__")
