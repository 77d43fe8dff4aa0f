"""Who this process is, as it registers."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from typing import Dict, List, Set, Tuple

_names: Set[Tuple[object, ...]] = set()  # of the workers of this process that run
_guard = threading.Lock()


def labels_found() -> Dict[str, str]:
    """Labels that the environment says."""
    names = {
        "pod": "POD_NAME",
        "namespace": "POD_NAMESPACE",
        "node": "NODE_NAME",
        "zone": "ZONE",
        "deployment": "DEPLOYMENT",
    }
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


def take_name(among: Tuple[object, ...], wanted: str) -> str:
    """A name that no other running worker of this process has among those with the same queue and machine: two of one name would
    supersede each other."""
    with _guard:
        name, number = wanted, 1
        while (*among, name) in _names:
            number += 1
            suffix = f"-{number}"
            name = wanted[: 128 - len(suffix)] + suffix
        _names.add((*among, name))
        return name


def release_name(among: Tuple[object, ...], name: str) -> None:
    """The worker has ended."""
    with _guard:
        _names.discard((*among, name))


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
