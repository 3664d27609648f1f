"""The JSON Schema of all that iopstui writes as JSON, made of the registries it is written from."""
