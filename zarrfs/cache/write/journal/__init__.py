"""The recovery journal: changes that could not be stored when their mount ended.

``journal.Journal`` keeps what is pending and finds what other mounts have kept;
``pending`` has the forms that changes come in, ``entry_file`` the bytes of an entry, and
``directory.JournalDirectory`` everything that touches the disk.

Invariants:

1. One file is one entry: the changes of one chunk, or the growth of one array, by one
   mount. Its name tells the chunk and the mount, so no mount replaces another one's entry.
2. An entry is complete or not there. It is written to a temporary file, synced, and
   renamed; then its directory is synced. Only after that is it told to be kept. The names
   of temporary files never match that of an entry.
3. A temporary file is locked while somebody writes it. One that is not locked is a
   leftover, which the next mount removes. A write that fails removes its own.
4. An entry is believed when it is a regular file of the user who mounts, in a directory
   of that user, of exactly the size that its first line says, and its hash is right. The
   first line is checked before memory is taken for the rest.
5. What is not believed never keeps a mount from starting. A damaged entry moves to
   ``damaged``, with a line in the log; what belongs to another user stays, with a line in
   the log.
6. An entry goes only after what it holds is stored: by the mount that replays it, or by
   the mount that wrote it. A replay that is cut short at any step can be done again.
7. An entry that may not be stored, because others have changed the same elements since,
   moves to ``conflicts``.
8. Directories that zarrfs makes have the mode 0700, files 0600, whatever the umask. A
   directory of entries goes when it is empty.
"""
