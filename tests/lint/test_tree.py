"""Every lint over the whole tree."""
import pytest

from lint import LINTS, ROOT


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LINTS)
def test_the_tree_is_clean(name, request):
    found = LINTS[name](ROOT, request.config.getoption("--full"))
    assert not found, "\n".join(["", *found])
