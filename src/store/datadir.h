/*
 * The data directory: created on first use with mode 0700, locked while in use, and marked with a
 * format file so that data of another version or another program is never mistaken for ours.
 *
 *   FORMAT   one line of text: the name and version of the format
 *   LOCK     locked while a process uses the directory, which is locked too (io/file.h)
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

/* Creates only the directory, durably in its parent. No effect if it exists. */
MUST_CHECK
enum status datadir_make(struct fs *fs, const char *path, struct error *ret_error);

/*
 * The FORMAT file of a store. It is damaged if no version of this program writes such a file.
 * ST_WRONG_FORMAT: another version, a mirror, or the data of an etcd. Changes nothing.
 */
enum datadir_format { DATADIR_FORMAT_INTACT, DATADIR_FORMAT_DAMAGED, DATADIR_FORMAT_MISSING };
MUST_CHECK
enum status datadir_examine_format(struct fs *fs, const char *path, enum datadir_format *ret_format,
                                   struct error *ret_error);
/* Writes it again where it is damaged or missing, and locks the directory meanwhile. */
MUST_CHECK
enum status datadir_mend_format(struct fs *fs, const char *path, struct error *ret_error);

/*
 * The directory of a store, or of the mirror of a cluster: neither is opened as the other.
 * ST_IN_USE, ST_WRONG_FORMAT (another version, etcd's data, or a directory with other files), or
 * the error of the system; the error text says what to do.
 */
MUST_CHECK
enum status datadir_open(struct datadir *dir, struct fs *fs, const char *path, bool is_mirror,
                         struct error *ret_error);
/*
 * Adds to an error about damaged or unreadable data, of a start or of a repair that failed, the
 * commands that help. Other errors stay as they are. Returns the status of the error.
 */
enum status datadir_advise(const char *path, bool is_repair, struct error *error);
/* Releases the lock. A zeroed one may be closed. */
void datadir_close(struct datadir *dir);

#endif
