"""Words in the paths of figures. Apart from the registry (fields.py), which names all of them and
takes its time to be made: most who name a figure need no more than these."""

from __future__ import annotations

SCHEMA = 1
"""Of a frame object, and of all lines of JSON."""
ANY = "*"
"""Any key there: a device, a CPU, a job."""
TOTAL = "total"
"""All directions, or all devices, together."""
DEVICE = "device"
"""What the probe counted."""
WAIT = "wait"
"""Where I/Os wait."""
