/*
 * Where a new data directory is built, so that no server takes it for one before it is whole: see
 * import/import.h. The machine's files only.
 */
#ifndef VIGIL_IMPORT_PLACE_H
#define VIGIL_IMPORT_PLACE_H

#include "base/error.h"
#include "io/file.h"

struct import_place {
    const char *data_dir; /* borrowed */
    char build_dir[4096]; /* in it */
    bool made;            /* the data directory was not there before */
    struct file *lock;    /* the one a server takes; NULL: not begun, nothing here is ours */
};

/* ST_EXISTS: the directory is not empty. ST_IN_USE: a server or another import has it. Removes what
 * an import that was interrupted has left. */
MUST_CHECK
enum status import_place_begin(struct import_place *place, struct fs *fs, const char *data_dir,
                               struct error *ret_error);
/* The store in it is closed and on disk. */
MUST_CHECK
enum status import_place_commit(struct import_place *place, struct fs *fs, struct error *ret_error);
/* Removes all that was made, unless it was committed, and lets go of the directory. Accepts a
 * zeroed one. */
void import_place_end(struct import_place *place);

#endif
