"""Print falling values, burning CPU time before each: descend.py FROM STEP SECONDS [LAST WORDS...].

`o 100`, then `o 99` after SECONDS of CPU time and so on, for ever or down to 0.
"""

import subprocess
import sys
import time

begun = time.process_time()
value, step, seconds = (float(word) for word in sys.argv[1:4])
how = sys.argv[4] if len(sys.argv) > 4 else "go-on"


def burn() -> None:
    """Use this much CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


while value >= 0:
    if how == "in-children":
        program = f"import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"
        subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
    else:
        burn()
    print(f"o {value:g} after {time.process_time() - begun:.4f}", flush=True)  # noqa: T201 (these are its values)
    if how == "crash" and value <= 50:
        sys.exit(3)
    value -= step
