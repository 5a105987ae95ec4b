/* Accesses a file at given offsets and tells how long it took, without an interpreter's share.
 *
 *   access pread  FILE OFFSETS SIZE [SECONDS]
 *   access mmap   FILE OFFSETS SIZE
 *   access pwrite FILE OFFSETS SIZE DATA
 *
 * OFFSETS is a file of native 64-bit integers. With SECONDS they are gone through again and
 * again until so much time has passed. "mmap" copies from a shared mapping. "pwrite" writes the
 * first SIZE bytes of DATA everywhere and ends with fsync, which counts. Prints the number of
 * accesses and the seconds, from before the first to after the last. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *contents(const char *path, int flags, size_t *size)
{
    struct stat stat;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &stat) != 0)
        die(path);
    *size = (size_t)stat.st_size;
    void *memory = mmap(NULL, *size, PROT_READ, MAP_SHARED | flags, file, 0);
    if (memory == MAP_FAILED)
        die(path);
    close(file);
    return memory;
}

int main(int count, char **words)
{
    if (count < 5) {
        fprintf(stderr, "usage: access pread|mmap|pwrite FILE OFFSETS SIZE [SECONDS|DATA]\n");
        return 2;
    }
    const char *mode = words[1], *path = words[2];
    size_t size = strtoull(words[4], NULL, 10), listed, file_size = 0;
    const int64_t *offsets = contents(words[3], MAP_POPULATE, &listed);
    size_t number = listed / sizeof *offsets, done = 0;
    int writes = strcmp(mode, "pwrite") == 0, maps = strcmp(mode, "mmap") == 0;
    double limit = !writes && count > 5 ? atof(words[5]) : 0;
    char *buffer = malloc(size);
    const char *mapping = NULL;
    int file = -1;

    if (buffer == NULL)
        die("malloc");
    memset(buffer, 1, size);
    if (writes) {
        size_t there;
        const char *data = contents(words[5], 0, &there);
        memcpy(buffer, data, size < there ? size : there);
    }
    double begun = now();
    if (maps)
        mapping = contents(path, 0, &file_size);
    else if ((file = open(path, writes ? O_WRONLY : O_RDONLY)) < 0)
        die(path);
    do {
        for (size_t i = 0; i < number; i++, done++) {
            /* At least one, however long the file took to open. */
            if (limit > 0 && done > 0 && done % 64 == 0 && now() - begun >= limit)
                break;
            if (maps)
                memcpy(buffer, mapping + offsets[i], size);
            else if (writes) {
                if (pwrite(file, buffer, size, offsets[i]) != (ssize_t)size)
                    die("pwrite");
            } else if (pread(file, buffer, size, offsets[i]) != (ssize_t)size)
                die("pread");
        }
    } while (now() - begun < limit);
    if (writes && fsync(file) != 0)
        die("fsync");
    printf("%zu %.9f\n", done, now() - begun);
    return 0;
}
