"""Rules by subject: each turns evidence into one finding, or none."""
