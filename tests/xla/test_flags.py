"""Settings before jax starts: the user's stay."""

import os
import subprocess
import sys

PROGRAM = """
import os
from jaxbandit.xla.flags import start_jax
start_jax("none")
print(os.environ.get("XLA_FLAGS", ""))
"""


def test_what_the_user_has_set_stays(tmp_path):
    given = "--xla_cpu_multi_thread_eigen=true"
    environment = {**os.environ, "XLA_FLAGS": given, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.split()
    assert words[0] == given
    assert sum(word.startswith("--xla_cpu_multi_thread_eigen") for word in words) == 1
