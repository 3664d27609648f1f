"""The JSON Schema of all JSON output, built from the registries that the output uses."""
