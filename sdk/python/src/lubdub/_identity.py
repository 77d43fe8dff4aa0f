"""Who this process is, as it registers."""

from __future__ import annotations

import os
import re
import socket
import sys
from typing import Dict, List


def labels_found() -> Dict[str, str]:
    """Labels that the environment says."""
    names = {"pod": "POD_NAME", "namespace": "POD_NAMESPACE", "node": "NODE_NAME", "zone": "ZONE", "deployment": "DEPLOYMENT"}
    return {label: os.environ[name] for label, name in names.items() if os.environ.get(name)}


def runtimes_found() -> List[str]:
    """python and its version: python3.11."""
    return ["python", "python%d.%d" % sys.version_info[:2]]


def hostname() -> str:
    """The host's name; "": it has none."""
    try:
        return socket.gethostname()
    except OSError:
        return ""


def name_found(pid: int) -> str:
    """Tells this process from others on its machine. In a container it may be process 1 as they all are, and where the container has
    the host's network it has the host's name too: then the container's id does."""
    if os.environ.get("POD_NAME"):
        return os.environ["POD_NAME"][:128]
    program = os.path.basename(sys.argv[0] or "python") or "python"
    if pid == 1:
        try:
            with open("/proc/self/mountinfo", encoding="ascii", errors="replace") as file:
                found = re.search(r"[0-9a-f]{64}", file.read())
        except OSError:
            found = None
        if found:
            return f"{program}-{found[0][:12]}"[:128]
    return program[:128]


def machine_found() -> str:
    """The host: NODE_NAME, else its name."""
    return as_id(os.environ.get("NODE_NAME") or hostname())


def as_id(name: str) -> str:
    """Makes an id of a host's name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("._-")[:128]
