"""The pause of the search for cyclic garbage: it ends as it began, whatever happens."""

from __future__ import annotations

import gc

import pytest

from memlab.runtime.machine import no_collection


def test_it_is_paused_within() -> None:
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_function_that_fails_ends_the_pause() -> None:
    @no_collection()
    def fail() -> None:
        assert not gc.isenabled()
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fail()
        assert gc.isenabled()
