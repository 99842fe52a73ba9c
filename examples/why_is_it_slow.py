"""A table whose sidecar is gone: what the doctor says of it, and what its advice brings.

python examples/why_is_it_slow.py [FOLDER]
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import lazydelta as ld
from lazydelta.sample.make import SampleSpec, make_sample

OLD_HOUR = "_event_hour = '2026020203'"


def main(folder: Path) -> None:
    """Break, ask, mend, compare."""
    make_sample(folder / "telemetry", SampleSpec(files=400, hours=200, rows=10))
    shutil.rmtree(folder / "telemetry" / "_delta_log" / "_lazy")

    table = ld.open(folder / "telemetry")
    print("one old hour comes from the", table.scan(OLD_HOUR).explain().source)
    for finding in table.doctor().findings:
        print(f"{finding.severity}: {finding.code}")
        if finding.code == "no_sidecar" and finding.remedy is not None:
            words = shlex.split(finding.remedy.command)  # lazydelta sidecar build …
            command = [sys.executable, "-m", "lazydelta", *words[1:]]
            subprocess.run(command, check=True, capture_output=True)

    table = ld.open(folder / "telemetry")
    print("one old hour comes from the", table.scan(OLD_HOUR).explain().source)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
