/*
 * The data directory: made on first use with mode 0700, locked while in use, and marked with a
 * format file so that no other version and no other program is mistaken for ours.
 *
 *   FORMAT   one line of text: what this is, and which format
 *   LOCK     held while a process uses the directory
 *   log/     the segments (store/log/log.h)
 *   meta/    the checkpoint (store/backend/backend.h)
 */
#ifndef VIGIL_STORE_DATADIR_H
#define VIGIL_STORE_DATADIR_H

#include "base/error.h"
#include "io/file.h"

struct datadir {
    char log_path[4096];
    char meta_path[4096];
    struct file *lock; /* owned */
};

/*
 * ST_IN_USE, ST_WRONG_FORMAT (another version, a real etcd's, or something else that is not
 * empty), or what the system says; the error is a sentence that helps.
 */
MUST_CHECK
enum status datadir_open(struct datadir *dir, struct fs *fs, const char *path,
                         struct error *ret_error);
/* Lets go of the lock. A zeroed one may be closed. */
void datadir_close(struct datadir *dir);

#endif
