"""Types that every room shares are defined once."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_array_and_state_have_one_home():
    found = [
        (path.relative_to(ROOT).as_posix(), target.id)
        for folder in ("jaxbandit", "experiments")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("Array", "State")
    ]
    assert found == [("jaxbandit/types.py", "Array"), ("jaxbandit/types.py", "State")]
