"""Pages that the kernel has of the files of one array, and writes past them.

Several files show the same elements. The kernel keeps pages of each file, and hands over a page
that a program changed in a mapping as a whole: with new bytes, and with bytes as they were when the
page was read. Therefore the files of an array never have changed pages of the same elements at the
same time, and nothing has to be compared, guessed or repaired:

- The first file that a program opens for writing through the page cache is the *owner*. Chunk files
  of one tree have no common elements, so several of them may be owners.
- Any other file that is opened for writing meanwhile is *direct*: the kernel keeps no pages of what
  is read and written through that handle, and the file cannot be mapped shared.
- A direct write is applied; then the kernel drops the owner's pages; then the write returns.
  Changed pages that come in until then are older than the write, so the write is applied again over
  each of them. Pages that are read afterwards have the new bytes.
- The kernel drops pages of files that are only read before `fsync` or `close` returns.
- A file of several arrays is a file of each of them, and always direct where it is written to.

The kernel waits for pages that are being read or written before it drops them. So a read or write
through an owner never waits for pages to be dropped; only direct writes do, and they hold no pages.

State that lives on the event loop, and where its tasks may be suspended (checkpoints):

| class | state | checkpoints |
|---|---|---|
| `KernelPages` | epochs of inodes, writers of arrays | none: no method awaits |
| `OpenPlaces` | places of handles | none |
| `RefusedPages` | refused ranges | none |
| `ArrayPages` | owners, cached handles | none in `enter` and `leave` |
| `ArrayPages` | the direct write under way | `write_past`: turn, gate, write, drops |
| `OpenFiles.open` | handles, places | none from the entry on |
"""
