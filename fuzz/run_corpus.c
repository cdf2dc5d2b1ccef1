/*
 * Runs a fuzz harness over the files of a corpus directory, as an ordinary test: linked with the
 * harness instead of libFuzzer, so it needs no clang.
 */
#include "base/buf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "run_corpus: %s: %s\n", why, what);
    exit(1);
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot open", path);
    AUTO(buf_fini) struct buf bytes = {0};
    size_t got;
    do {
        if (buf_reserve(&bytes, 4096) != ST_OK)
            fail("out of memory", path);
        got = fread(bytes.ptr + bytes.len, 1, 4096, file);
        bytes.len += got;
    } while (got > 0);
    fclose(file);

    /* A copy without slack, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(bytes.len ? bytes.len : 1);
    if (!exact)
        fail("out of memory", path);
    slice_copy(exact, buf_slice(&bytes));
    LLVMFuzzerTestOneInput(exact, bytes.len);
    free(exact);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("usage", "run_corpus DIRECTORY");
    DIR *directory = opendir(argv[1]);
    if (!directory)
        fail("cannot open", argv[1]);
    unsigned files = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        if (len < 0 || (size_t)len >= sizeof(path))
            fail("path too long", entry->d_name);
        run_file(path);
        files++;
    }
    closedir(directory);
    if (files == 0)
        fail("no files in", argv[1]);
    printf("%u files\n", files);
    return 0;
}
