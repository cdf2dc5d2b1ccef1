/* The new data directory of an import, built so that no server accepts it before it is complete:
 * see import/import.h. Uses real files only. */
#ifndef VIGIL_IMPORT_TARGET_H
#define VIGIL_IMPORT_TARGET_H

#include "base/error.h"
#include "io/file.h"

struct import_target {
    const char *data_dir; /* borrowed */
    char build_dir[4096]; /* within data_dir */
    bool made;            /* the data directory did not exist before */
    struct file *lock;    /* the lock that a server takes; NULL: not begun, or committed */
};

/* ST_EXISTS: the directory is not empty. ST_IN_USE: a server or another import uses it. Removes
 * what an interrupted import left. */
MUST_CHECK
enum status import_target_begin(struct import_target *target, struct fs *fs, const char *data_dir,
                                struct error *ret_error);
/* To be called when the store in it is closed and synced. */
MUST_CHECK
enum status import_target_commit(struct import_target *target, struct fs *fs,
                                 struct error *ret_error);
/* Removes everything that was made, unless it was committed, and releases the directory. Accepts a
 * zeroed one. */
void import_target_end(struct import_target *target);

#endif
