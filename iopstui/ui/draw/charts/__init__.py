"""Charts as rows of styled text: scales, curves, heat maps, marks."""
