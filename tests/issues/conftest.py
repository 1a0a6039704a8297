"""The same fixtures as the system tests have."""
import importlib.util
import sys
from pathlib import Path

SYSTEM = Path(__file__).resolve().parent.parent / "system"
sys.path.insert(0, str(SYSTEM))

spec = importlib.util.spec_from_file_location("system_conftest", SYSTEM / "conftest.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
globals().update({k: v for k, v in vars(module).items() if not k.startswith("__")})
