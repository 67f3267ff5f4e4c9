"""The report of the results: a page, Markdown, and lines of the README."""
