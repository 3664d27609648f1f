"""How a report's page is written: its parts as HTML and Markdown, and its charts."""
