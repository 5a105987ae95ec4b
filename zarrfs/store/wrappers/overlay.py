"""Changes to a store, kept in a local directory in place of the store.

The directory holds, below the key of each object:

- ``changed/KEY``: the object as it is now;
- ``removed/KEY``: an empty file for an object that is removed;
- ``before/KEY``: the state of the store's own object when the first change came, as JSON; while
  a commit is under way, also what it makes of that object;
- ``arrays/KEY``: the store's own document of an array when its first change came.

An object in ``changed`` counts before one in ``removed``, and a put over a removed object leaves
``removed`` as it is. So nobody sees the store's own object between two steps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from zarrfs.errors import StoreChanged, StoreConflict, StoreError, StoreReadOnly
from zarrfs.store.base import (
    ANY,
    Blob,
    Data,
    Expected,
    Generation,
    ObjectInfo,
    Store,
    StoreTraits,
)
from zarrfs.store.wrappers.overlay_arrays import MetadataComparison, OverlayArrays
from zarrfs.store.wrappers.wrapper import StoreWrapper

_T = TypeVar("_T")

_CHANGED, _REMOVED, _BEFORE = "changed/", "removed/", "before/"
_SOURCE = "source.json"
_LONGEST_STATE = 1 << 16
_TRIES = 8


class Committed(NamedTuple):
    """The outcome of `OverlayStore.commit`.

    stored, removed : numbers of objects of the store.
    kept : why others stay in the overlay, by key.
    """

    stored: int
    removed: int
    kept: dict[str, str]


class OverlayStore(StoreWrapper):
    """A store that takes changes without changing the store ``inner``.

    upper : holds them; a local store.
    source : tells stores apart; an overlay belongs to one.
    documents : names of metadata documents, which are committed after chunks.
    arrays : what is known of documents of arrays; None: their chunks are objects like others.
    """

    def __init__(
        self,
        inner: Store,
        upper: Store,
        source: str,
        documents: Collection[str] = (),
        arrays: MetadataComparison | None = None,
    ) -> None:
        """Raises StoreError where ``upper`` belongs to another store, or cannot be written."""
        super().__init__(inner)
        self._documents = documents
        self._upper = upper
        self._arrays = None
        if arrays is not None:
            self._arrays = OverlayArrays(inner, upper, arrays, self._holds)
        mark = json.dumps({"source": source}).encode()
        if upper.info(_SOURCE) is None:
            with suppress(StoreConflict):  # of a mount that begins at the same time
                upper.put(_SOURCE, [mark], expected=None)
        found = upper.get(_SOURCE, limit=_LONGEST_STATE)
        if found is None or bytes(found.data) != mark:
            raise StoreError("", f"{upper.local_path} holds changes to another source")

    @property
    def local_path(self) -> None:
        # Who reads the directory sees the store without its changes.
        return None

    @property
    def traits(self) -> StoreTraits:
        # Its objects change, whatever the store says.
        return self._inner.traits._replace(immutable=False)

    @property
    def read_only(self) -> str | None:
        return self._upper.read_only

    def get(self, key: str, *, limit: int) -> Blob | None:
        if self._arrays is not None and self._arrays.is_own(key):
            self._arrays.check(key.rpartition("/")[0])
        return super().get(key, limit=limit)

    def info(self, key: str) -> ObjectInfo | None:
        found = super().info(key)
        # Else the document here hides that the store's own one is another.
        if self._arrays is not None and self._arrays.is_own(key) and self._has(key):
            self._arrays.check(key.rpartition("/")[0])
        return found

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        own = {key for key in keys if self._has(key) or self._is_of_array(key)}
        found = self._inner.get_many([key for key in keys if key not in own], limit=limit)
        for key in keys:
            yield next(super().get_many([key], limit=limit) if key in own else found)

    def list_dir(self, prefix: str) -> Iterator[str]:
        below = f"{prefix}/" if prefix else ""
        changed = set(self._upper.list_dir((_CHANGED + prefix).rstrip("/")))
        removed = set(self._upper.list_dir((_REMOVED + prefix).rstrip("/")))
        yield from sorted(changed)
        for name in self._inner.list_dir(prefix):
            if name in changed:
                continue
            if name.endswith("/") or name not in removed or self._is_inner(below + name):
                yield name

    def list_all(self, prefix: str) -> None:
        return None

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        # Who writes beside this one may make the first change, or commit.
        for _ in range(_TRIES):
            self._check_end(key)
            mine = self._upper.info(_CHANGED + key)
            if mine is None:
                self._begin(key, expected)
            elif expected is None:
                raise StoreConflict(key, "exists already")
            state = None if mine is None else expected
            try:
                return self._naming(
                    key, partial(self._upper.put, _CHANGED + key, parts, expected=state)
                )
            except StoreConflict:
                if mine is not None:
                    raise
        raise StoreConflict(key, "keeps changing while it is written")

    def delete(self, key: str, *, expected: Expected) -> None:
        self._check_end(key)
        mine = self._upper.info(_CHANGED + key)
        if mine is None:
            self._begin(key, expected)
        if self._inner.info(key) is not None:
            self._upper.put(_REMOVED + key, [b""], expected=ANY)
        if mine is not None:
            self._naming(key, lambda: self._upper.delete(_CHANGED + key, expected=expected))

    def leftovers(self, *, remove: bool) -> list[str]:
        return self._upper.leftovers(remove=remove)

    def free_space(self) -> tuple[int, int] | None:
        return self._upper.free_space()

    def close(self) -> None:
        self._upper.close()
        super().close()

    # --- what is changed, and how it gets into the store --------------------------

    def changes(self) -> Iterator[tuple[str, int | None]]:
        """Each changed key with its size in bytes; None for a removed object. By key."""
        changed = {key: self._upper.info(_CHANGED + key) for key in self._keys(_CHANGED)}
        sizes = {key: None if info is None else info.size for key, info in changed.items()}
        removed = dict.fromkeys(self._keys(_REMOVED))
        yield from sorted((removed | sizes).items())

    def commit(self, limit: int) -> Committed:
        """Put all changes into the store, and drop them here. Chunks first, removals last.

        limit : most bytes of an object, which is held in memory.

        An object that the store has changed since stays in the overlay, as does one that the store
        does not take. Raises StoreReadOnly where the store cannot be written to.
        """
        if (reason := self._inner.read_only) is not None:
            raise StoreReadOnly("", reason)
        done = {_CHANGED: 0, _REMOVED: 0}
        kept: dict[str, str] = {}
        documents = {key for key in self._keys(_CHANGED) if self._is_document(key)}
        # All that means what it should only with the documents: those of groups have the shapes of
        # arrays, too, and chunks of an array that has become smaller are removed behind it.
        arrays = tuple(k[: k.rfind("/") + 1] for k in documents if self._is_array(k, limit))
        first = self._first_changed_below(sorted(documents), limit)
        checked: dict[str, str | None] = {}
        for kind, commit in ((_CHANGED, self._commit), (_REMOVED, self._commit_removal)):
            for key in sorted(self._keys(kind), key=lambda key: (self._is_document(key), key)):
                try:
                    if self._arrays is not None and not self._is_document(key):
                        self._arrays.check_chunk(key, checked)
                    belongs = key in documents or key.startswith(arrays)
                    if belongs and first not in (None, key):
                        raise StoreConflict(key, f"belongs with {first}, which is not stored")
                    done[kind] += commit(key, limit)
                except StoreError as error:
                    kept[key] = error.reason
                    if key in documents:
                        first = first or key
        return Committed(done[_CHANGED], done[_REMOVED], kept)

    def _first_changed_below(self, documents: Sequence[str], limit: int) -> str | None:
        """The first of the documents here that another writer changed in the store, too."""
        for key in documents:
            try:
                if (found := self._upper.get(_CHANGED + key, limit=limit)) is not None:
                    self._own_state(key, self._inner.info(key), limit, _content(found.data))
            except StoreError:
                return key
        return None

    def _is_array(self, document: str, limit: int) -> bool:
        if self._arrays is None:
            return True
        found = self._upper.get(_CHANGED + document, limit=limit)
        return found is not None and self._arrays.is_array(document, bytes(found.data))

    def _commit(self, key: str, limit: int) -> bool:
        if (found := self._upper.get(_CHANGED + key, limit=limit)) is None:
            return False
        content = _content(found.data)
        state = self._own_state(key, self._inner.info(key), limit, content)
        self._note(key, _state(state), content)
        state = self._inner.put(key, [found.data], expected=state).generation
        noted = self._note(key, _state(state))
        self._upper.delete(_REMOVED + key, expected=ANY)
        try:
            self._upper.delete(_CHANGED + key, expected=found.info.generation)
        except StoreConflict:
            return True  # a later change, to what the store has now
        with suppress(StoreConflict):  # of who made the next change since
            self._upper.delete(_BEFORE + key, expected=noted)
        return True

    def _commit_removal(self, key: str, limit: int) -> bool:
        if self._upper.info(_CHANGED + key) is not None:
            return False
        now = self._inner.info(key)
        if now is not None:
            state = self._own_state(key, now, limit)
            self._note(key, _state(state), _state(None))
            self._inner.delete(key, expected=state)
        self._upper.delete(_REMOVED + key, expected=ANY)
        self._upper.delete(_BEFORE + key, expected=ANY)
        return now is not None

    def _own_state(
        self, key: str, now: ObjectInfo | None, limit: int, *contents: str
    ) -> Generation | None:
        """The state of the store's object, which nobody else has changed.

        now : as the store describes it.
        contents : that it may have, too.

        Raises StoreConflict.
        """
        state, before = None if now is None else now.generation, self._before(key)
        if _state(state) in before:
            return state
        # An earlier commit may have been cut short behind its put.
        there = self._inner.get(key, limit=limit)
        if there is None or _content(there.data) not in {*contents, *before}:
            raise StoreConflict(key, "was changed in the source, too")
        return there.info.generation

    def _keys(self, kind: str, below: str = "") -> Iterator[str]:
        for name in list(self._upper.list_dir((kind + below).rstrip("/"))):
            if name.endswith("/"):
                yield from self._keys(kind, below + name)
            else:
                yield below + name

    def _begin(self, key: str, expected: Expected) -> None:
        """Before the first change of an object: it must be as expected, and its state is noted."""
        present = None
        if self._arrays is not None and (self._arrays.is_own(key) or not self._is_document(key)):
            self._arrays.note(key)
        if self._upper.info(_REMOVED + key) is None:
            present = self._inner.info(key)
            self._note(key, _state(None if present is None else present.generation))
        state = None if present is None else present.generation
        if expected is not ANY and expected != state:
            raise StoreConflict(key, "is not in the expected state")

    def _note(self, key: str, *states: str) -> Generation:
        """Note the states, or contents, in which the store's object is nobody else's change."""
        data = json.dumps(states).encode()
        return self._upper.put(_BEFORE + key, [data], expected=ANY).generation

    def _before(self, key: str) -> Collection[str]:
        found = self._upper.get(_BEFORE + key, limit=_LONGEST_STATE)
        try:
            states = "" if found is None else json.loads(bytes(found.data))
        except (ValueError, RecursionError):
            states = None
        states = states if isinstance(states, list) else [states]
        # Where a note is damaged, the contents decide.
        return [state for state in states if isinstance(state, str)]

    def _is_document(self, key: str) -> bool:
        return key.rpartition("/")[2] in self._documents

    def _has(self, key: str) -> bool:
        """True if an object is changed or removed, or the upper store fails to answer."""
        try:
            return self._upper.info(_CHANGED + key) is not None or not self._is_inner(key)
        except StoreError:
            return True

    def _is_of_array(self, key: str) -> bool:
        """Whether the document of an array is compared with the store's own one when it is read."""
        if self._arrays is None or not self._arrays.is_own(key):
            return False
        try:
            return self._arrays.has(key.rpartition("/")[0])
        except StoreError:
            return True

    def _holds(self, node: str) -> bool:
        below = f"{node}/" if node else ""
        keys = chain(self._keys(_CHANGED, below), self._keys(_REMOVED, below))
        return next(keys, None) is not None

    def _is_inner(self, key: str) -> bool:
        return self._upper.info(_REMOVED + key) is None

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        found = self._naming(key, lambda: ask(self._upper, _CHANGED + key))
        if found is None and self._is_inner(key):
            return ask(self._inner, key)
        self._check_end(key)
        return found

    def _check_end(self, key: str) -> None:
        """Raises StoreChanged where a change here hides elements that the store's array has since.

        They are not in the object here, so that they would read as the fill value.
        """
        if self._arrays is None or not self._arrays.may_end_before(key) or self._is_document(key):
            return
        if not self._has(key):
            return
        now = self._inner.info(key)
        if _state(None if now is None else now.generation) not in self._before(key):
            raise StoreChanged(
                key,
                f"another program has made the array larger, and changed this object, of which "
                f"{self._upper.local_path} holds a change",
            )

    @staticmethod
    def _naming(key: str, call: Callable[[], _T]) -> _T:
        """Has errors of the upper store name the key as the caller knows it."""
        try:
            return call()
        except StoreError as error:
            raise type(error)(key, error.reason) from error


def _state(generation: Generation | None) -> str:
    """A digest of a state, which names no host and holds no secret; "" for no object."""
    if generation is None:
        return ""
    return hashlib.sha256(repr(generation).encode("utf-8", "surrogateescape")).hexdigest()


def _content(data: Data) -> str:
    return "content " + hashlib.sha256(data).hexdigest()
