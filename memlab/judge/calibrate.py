"""Command line of judge calibration: ``python -m memlab.judge.calibrate``."""

from memlab.judge.calibration.calibrate import main

if __name__ == "__main__":
    raise SystemExit(main())
