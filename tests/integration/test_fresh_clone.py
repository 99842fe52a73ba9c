"""README's two commands, from a clone in an empty folder, with an empty home: install, and see the page.

Why: what works here may lean on what somebody installed by hand. The table is made by the command itself.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = "/usr/local/bin:/usr/bin:/bin"
NETWORK = re.compile(r"(PIP_|UV_|SSL_|REQUESTS_)|.*_proxy$", re.IGNORECASE)
COMMANDS = re.compile(
    r"run by tests/integration/test_fresh_clone\.py -->\n```console\n\$ (.+)\n\$ (.+)\n(http\S+)\n```"
)


@pytest.mark.timeout(900)
def test_whoever_follows_the_readme_sees_the_page(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    found = COMMANDS.search((clone / "README.md").read_text("utf-8"))
    assert found is not None
    install, show = found[1], found[2].replace("URL", "telemetry")
    # How the machine reaches packages is no part of a home.
    network = {name: value for name, value in os.environ.items() if NETWORK.match(name)}
    environment = {
        **network,
        "HOME": str(home),
        "PATH": f"{tmp_path / 'venv' / 'bin'}:{PATHS}",
        "LANG": "C.UTF-8",
    }
    for command in (f"{install} --quiet", "lazydelta sample telemetry"):
        done = subprocess.run(
            shlex.split(command), cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    with subprocess.Popen(
        shlex.split(show), cwd=clone, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert re.sub(r":\d+/", ":N/", address) == re.sub(r":\d+/", ":N/", found[3])
            with urllib.request.urlopen(address.partition("#")[0], timeout=120) as answer:
                assert answer.status == 200 and b"lazydelta" in answer.read()
        finally:
            process.terminate()
            assert process.wait(60) in (0, 143)
    assert [path.name for path in home.iterdir() if path.name not in (".cache", ".local")] == []
