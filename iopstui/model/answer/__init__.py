"""The answer: one sentence on a disk, from all that is known of its last seconds."""
