"""Results as lines of JSON in the work folder: a run can be stopped, gone on with, and told again without measuring."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Store:
    """All results of one build of the program under test; those of other builds stay in the file, unseen."""

    def __init__(self, path: Path, build: str) -> None:
        self._path = path
        self._build = build
        self._records: list[Record] = []
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    # A run was stopped while it wrote this line.
                    continue
                if record.get("build") == build:
                    self._records.append(record)

    def find(self, part: str, **key: object) -> Record | None:
        """The latest result with this key."""
        return next(self.all(part, newest_first=True, **key), None)

    def all(self, part: str, newest_first: bool = False, **key: object) -> Iterator[Record]:
        """The results of a part that have all of these values."""
        wanted = {"part": part, **key}
        records = reversed(self._records) if newest_first else iter(self._records)
        return (record for record in records if all(record.get(name) == value for name, value in wanted.items()))

    def latest(self, part: str, *names: str) -> list[Record]:
        """One result, the newest, for each combination of the values of `names`, in the order of their first ones."""
        found: dict[tuple[object, ...], Record] = {}
        for record in self.all(part):
            found[tuple(record.get(name) for name in names)] = record
        return list(found.values())

    def add(self, part: str, **values: object) -> Record:
        """Keeps a result."""
        record = {"build": self._build, "part": part, **values}
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self._records.append(record)
        return record


def build_of(program: Path) -> str:
    """A short name of a program's bytes."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:12]
