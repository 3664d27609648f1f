"""Files with promised figures of providers, and a guess which of them fit this machine."""
