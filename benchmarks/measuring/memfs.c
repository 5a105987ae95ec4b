/* A file system of one file in memory, in C: what a request through FUSE costs at the least.
 *
 *   memfs MOUNTPOINT BYTES [direct]
 *
 * Stays in the foreground until it is unmounted. With "direct" no read is answered from the
 * page cache. A file that is opened for writing only bypasses the page cache, as in zarrfs. Contents
 * are arbitrary and not zero, so that they have memory of their own. */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_INODE = 2 };
static const char file_name[] = "array.bin";
static const double cached = 3600;
static char *memory;
static size_t bytes;
static int direct;

static int describe(fuse_ino_t inode, struct stat *stat)
{
    memset(stat, 0, sizeof *stat);
    stat->st_ino = inode;
    if (inode == FUSE_ROOT_ID) {
        stat->st_mode = S_IFDIR | 0555;
        stat->st_nlink = 2;
    } else if (inode == FILE_INODE) {
        stat->st_mode = S_IFREG | 0644;
        stat->st_nlink = 1;
        stat->st_size = (off_t)bytes;
    } else {
        return ENOENT;
    }
    return 0;
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.attr_timeout = cached, .entry_timeout = cached};
    if (parent != FUSE_ROOT_ID || strcmp(name, file_name) != 0) {
        fuse_reply_err(request, ENOENT);
        return;
    }
    entry.ino = FILE_INODE;
    describe(FILE_INODE, &entry.attr);
    fuse_reply_entry(request, &entry);
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct stat stat;
    (void)info;
    if (describe(inode, &stat))
        fuse_reply_err(request, ENOENT);
    else
        fuse_reply_attr(request, &stat, cached);
}

static void on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    if (inode != FILE_INODE) {
        fuse_reply_err(request, EISDIR);
        return;
    }
    info->keep_cache = 1;
    info->direct_io = direct || (info->flags & O_ACCMODE) == O_WRONLY;
    fuse_reply_open(request, info);
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    (void)inode;
    (void)info;
    size_t start = (size_t)offset < bytes ? (size_t)offset : bytes;
    fuse_reply_buf(request, memory + start, size < bytes - start ? size : bytes - start);
}

static void on_write(fuse_req_t request, fuse_ino_t inode, const char *data, size_t size,
                     off_t offset, struct fuse_file_info *info)
{
    (void)inode;
    (void)info;
    if ((size_t)offset > bytes || size > bytes - (size_t)offset) {
        fuse_reply_err(request, ENOSPC);
        return;
    }
    memcpy(memory + offset, data, size);
    fuse_reply_write(request, size);
}

static void on_fsync(fuse_req_t request, fuse_ino_t inode, int only_data,
                     struct fuse_file_info *info)
{
    (void)inode;
    (void)only_data;
    (void)info;
    fuse_reply_err(request, 0);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = on_lookup,
    .getattr = on_getattr,
    .open = on_open,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
};

int main(int count, char **words)
{
    char *options[] = {words[0], "-o", "fsname=memfs,subtype=memfs", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, options);
    struct fuse_session *session;
    int status;

    if (count < 3) {
        fprintf(stderr, "usage: memfs MOUNTPOINT BYTES [direct]\n");
        return 2;
    }
    bytes = strtoull(words[2], NULL, 10);
    direct = count > 3;
    memory = malloc(bytes);
    if (memory == NULL)
        return 1;
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (char)(i * 31 + (i >> 12));

    session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
    if (session == NULL || fuse_session_mount(session, words[1]) != 0)
        return 1;
    fuse_set_signal_handlers(session);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    status = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return status != 0;
}
