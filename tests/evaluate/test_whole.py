from __future__ import annotations

from memlab.evaluate.whole import fits, whole

BUDGET = {"is": "memlab.Budget", "tokens": 1000, "twin": False}


def test_a_memory_that_most_budgets_hold_is_named_with_a_quarter_of_it_to_try() -> None:
    memory = {"tokens": 536.0, "turns": 12.0}
    found = whole([BUDGET, BUDGET, {"is": "memlab.Gap", "max_k": 40}], memory)
    assert found is not None
    assert (found["setting"], found["advised"], found["limit"]) == ("rank.select.tokens", 130, 1000)
    assert fits(found).startswith("everything fits; set rank.select.tokens=130: a memory of 536 tokens")
    assert whole([BUDGET, {"is": "memlab.Gap", "max_k": 40}], memory) is None  # half of the arms is not most
    assert whole([{**BUDGET, "tokens": 500}], memory) is None
    for unknown in ({}, {"turns": None}, {"tokens": 0.0}, {"tokens": "many"}):
        assert whole([BUDGET], unknown) is None


def test_k_limits_turns() -> None:
    found = whole([{"is": "memlab.Fixed", "k": 10}] * 2, {"tokens": 400.0, "turns": 8.0})
    assert found is not None
    assert (found["setting"], found["advised"], found["unit"]) == ("rank.select.k", 2, "turns")
    rules = [{"is": "memlab.Fixed", "k": k} for k in (3, 5, 10, 40)]
    assert whole(rules, {"turns": 20.0}) is None  # one of four holds everything
