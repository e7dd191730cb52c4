"""How the processes of this room are started without the rest of the package.

`import captime` loads NumPy and SciPy: tens of megabytes and a tenth of a second that a supervisor has no use for. So
an empty package of that name is put in place first, and only the modules that are asked for are loaded from it.
"""

import sys
from pathlib import Path

_STUB = """
import importlib, sys, types
package = types.ModuleType("captime")
package.__path__ = [sys.argv[1]]
sys.modules["captime"] = package
importlib.import_module(sys.argv[2]).main(sys.argv[3:])
"""


def command(module: str, *arguments: str, installed_packages: bool = False) -> list[str]:
    """Return the command that runs `main(arguments)` of a module of this package.

    Args:
        module: Its full name.
        arguments: Handed to its `main`.
        installed_packages: Let it find what is installed, and be influenced by its environment.
    """
    alone = [] if installed_packages else ["-I", "-S"]
    # File names have to mean the same bytes there as here.
    encoding = ["-X", f"utf8={sys.flags.utf8_mode}"]
    package = Path(__file__).parents[1]
    return [sys.executable, *alone, *encoding, "-c", _STUB, str(package), module, *arguments]
