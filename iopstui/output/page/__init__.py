"""Write a report's page: its parts as HTML and Markdown, and its charts."""
