"""A cache that is bounded in bytes; what was used least lately leaves first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Cache:
    """Values that say how many bytes they hold (`nbytes`), by any key; at most `limit` bytes together."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, *keys: Hashable) -> Any:
        with self.lock:
            for key in keys:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    return self.entries[key]
        return None

    def put(self, key: Hashable, value: Any) -> None:
        with self.lock:
            if key in self.entries or value.nbytes > self.limit:
                return
            self.entries[key] = value
            self.size += value.nbytes
            while self.size > self.limit:
                self.size -= self.entries.popitem(last=False)[1].nbytes
