"""Which cases of a test belong to which tier."""
import pytest


def some(cases, fast):
    """Parameters of a test that says the same of many alike, moments of a crash for one: the fast tier
    takes those of `fast`, the full tier all."""
    return [pytest.param(c, marks=[] if c in fast else [pytest.mark.full]) for c in cases]
