"""Code that commands on a single machine share: do one run, watch or experiment from start to
end."""
