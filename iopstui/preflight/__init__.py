"""Everything that is looked at before the first change."""
