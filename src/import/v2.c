#include "import/v2.h"

#include <stdio.h>
#include <stdlib.h>

/* How a client's key is written in the JSON of the v2 store; etcd's own are under /0. */
#define MARK "\"Path\":\"/1/"

enum { CHUNK_BYTES = 64 * 1024, MARK_BYTES = sizeof(MARK) - 1 };

struct newest {
    char name[256]; /* "": none. TERM-INDEX.snap in hex: the newest is the last */
};

static void note_name(void *ctx, const char *name)
{
    struct newest *newest = ctx;
    size_t len = strlen(name);
    if (len > 5 && len < sizeof(newest->name) && strcmp(name + len - 5, ".snap") == 0 &&
        strcmp(name, newest->name) > 0)
        memcpy(newest->name, name, len + 1);
}

/* Pieces overlap by the length of the marker less one byte. */
static bool file_has_mark(struct file *file, uint64_t bytes, uint8_t *chunk)
{
    for (uint64_t at = 0; at + MARK_BYTES <= bytes; at += CHUNK_BYTES - (MARK_BYTES - 1)) {
        size_t len = size_min(CHUNK_BYTES, bytes - at);
        if (file_pread(file, chunk, len, at) != ST_OK)
            return false;
        if (memmem(chunk, len, MARK, MARK_BYTES))
            return true;
    }
    return false;
}

bool import_v2_has_keys(struct fs *fs, const char *snap_dir)
{
    struct newest newest = {0};
    if (fs_list(fs, snap_dir, note_name, &newest) != ST_OK || !*newest.name)
        return false;
    char path[4400];
    snprintf(path, sizeof(path), "%s/%s", snap_dir, newest.name);
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes;
    if (fs_open(fs, path, FILE_READ_ONLY, &file) != ST_OK || file_size(file, &bytes) != ST_OK)
        return false;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    bool found = chunk && file_has_mark(file, bytes, chunk);
    free(chunk);
    return found;
}
