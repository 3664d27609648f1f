"""Output of commands that run nothing: lists, explanations, verdicts."""
