"""fio's JSON stream: bytes -> whole documents (framing) -> ``FioStatus`` (status)."""
