"""Words in the paths of figures. They are not in the registry (fields.py), which is slow to load:
most users of a figure need only these."""

from __future__ import annotations

SCHEMA = 1
"""Of a frame object, and of each JSON line."""
ANY = "*"
"""Any key there: a device, a CPU, a job."""
TOTAL = "total"
"""All directions, or all devices, together."""
DEVICE = "device"
"""What the probe counted."""
WAIT = "wait"
"""Where I/Os wait."""
