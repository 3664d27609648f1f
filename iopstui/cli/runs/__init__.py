"""Code that commands for a single machine share: do one run, watch or experiment from start to
end."""
