"""Output of commands that measure nothing themselves: lists, explanations, verdicts."""
