"""The recovery journal: changes that could not be stored when their mount ended.

``journal.Journal`` keeps pending changes and finds the entries of other mounts. ``pending`` has the
forms of changes, ``entry_file`` the bytes of an entry, and ``directory.JournalDirectory`` all code
that touches the disk.

Invariants:

1. One file is one entry: the changes of one chunk, or the growth of one array, by one
   mount. Its name identifies the chunk and the mount, so no mount replaces another's entry.
2. An entry is complete or absent. It is written to a temporary file, synced, and renamed;
   then its directory is synced. Only after that does `Journal.keep` report it as kept. The
   names of temporary files never match that of an entry.
3. A temporary file is locked while a mount writes it. An unlocked one is a leftover, which
   the next mount removes. A write that fails removes its own file.
4. An entry is trusted if it is a regular file of the user who mounts, in a directory of
   that user, has exactly the size that its first line says, and has the right hash. The
   first line is checked before memory is allocated for the rest.
5. An entry that is not trusted never keeps a mount from starting. A damaged entry is moved
   to ``damaged``, with a line in the log. A file of another user stays, with a line in the
   log.
6. An entry is removed only after its changes are stored: by the mount that replays it, or
   by the mount that wrote it. A replay that is interrupted at any step can be repeated.
7. An entry that must not be stored, because others have changed the same elements since,
   is moved to ``conflicts``.
8. Directories that zarrfs makes have the mode 0700, files 0600, whatever the umask. A
   directory of entries is removed when it is empty.
"""
