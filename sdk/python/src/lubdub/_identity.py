"""The identity under which this process registers."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from typing import Dict, List, Set, Tuple

_names: Set[Tuple[object, ...]] = set()  # names of the running workers of this process
_guard = threading.Lock()


def labels_found() -> Dict[str, str]:
    """The labels found in the environment."""
    names = {
        "pod": "POD_NAME",
        "namespace": "POD_NAMESPACE",
        "node": "NODE_NAME",
        "zone": "ZONE",
        "deployment": "DEPLOYMENT",
    }
    return {label: os.environ[name] for label, name in names.items() if os.environ.get(name)}


def runtimes_found() -> List[str]:
    """python, and python with its version: python3.11."""
    return ["python", "python%d.%d" % sys.version_info[:2]]


def hostname() -> str:
    """The host's name; "": unknown."""
    try:
        return socket.gethostname()
    except OSError:
        return ""


def name_found(pid: int) -> str:
    """A name that distinguishes this process from others on its machine. In a container the process may be pid 1, and with host networking
    it has the host's name; then the container's id is used."""
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
    """The machine: NODE_NAME, or else the host's name."""
    return as_id(os.environ.get("NODE_NAME") or hostname())


def as_id(name: str) -> str:
    """Turns a host's name into an id."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("._-")[:128]


def take_name(among: Tuple[object, ...], wanted: str) -> str:
    """A name that no other running worker of this process has for the same queue and machine: two workers of one name would supersede each
    other."""
    with _guard:
        name, number = wanted, 1
        while (*among, name) in _names:
            number += 1
            suffix = f"-{number}"
            name = wanted[: 128 - len(suffix)] + suffix
        _names.add((*among, name))
        return name


def release_name(among: Tuple[object, ...], name: str) -> None:
    """Frees a worker's name."""
    with _guard:
        _names.discard((*among, name))


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
