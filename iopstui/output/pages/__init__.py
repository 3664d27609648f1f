"""Answers of commands that run nothing: lists, explanations, verdicts."""
