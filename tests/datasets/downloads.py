"""A server for the loaders' tests: what `urlopen` returns, from memory."""


class Response:
    """Content that is read in parts, and its length."""

    def __init__(self, content):
        self.content = content
        self.headers = {"Content-Length": str(len(content))}

    def read(self, size):
        part, self.content = self.content[:size], self.content[size:]
        return part

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
