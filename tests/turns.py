"""Tests that are long once, and short from then on: how many turns one has had with a program as it
is built now, and with the scripts that it needs. It stands beside the program, in PROGRAM.TEST."""

import hashlib


class Turns:
    def __init__(self, program, test, scripts=()):
        self.path = f"{program}.{test}"
        digests = hashlib.sha256()
        for path in (program, *scripts):
            with open(path, "rb") as file:
                digests.update(hashlib.file_digest(file, "sha256").digest())
        self.digest = digests.hexdigest()

    def had(self):
        try:
            with open(self.path, encoding="ascii") as file:
                digest, turns = file.read().split()
        except (FileNotFoundError, ValueError):
            return 0
        return int(turns) if digest == self.digest else 0

    def count(self):
        """One more was had, and went well."""
        turns = self.had() + 1
        with open(self.path, "w", encoding="ascii") as file:
            file.write(f"{self.digest} {turns}\n")
