/*
 * The database of an etcd that is not running, DATA_DIR/member/snap/db: a bbolt file that is locked
 * and replaced as a whole, for `defrag --data-dir` and `migrate` of etcdctl 3.4. The new file has
 * no free pages. It replaces the old one at once, after it was synced: whatever fails leaves
 * the old one as it was. Memory does not depend on the size of the file.
 *
 * One owner, one thread.
 */
#ifndef VIGIL_CMD_CTL_OFFLINE_DB_FILE_H
#define VIGIL_CMD_CTL_OFFLINE_DB_FILE_H

#include "base/buf.h"
#include "base/error.h"

struct db_file;

struct db_file_options {
    const char *data_dir;
    bool creates;       /* a file that does not exist is not an error */
    const char *advice; /* behind the sentence that is printed while an etcd holds the file */
};

/* Waits for an etcd that still holds the file, and says so on standard error. */
MUST_CHECK
enum status db_file_open(const struct db_file_options *options, struct db_file **ret_file,
                         struct error *ret_error);
/* Accepts NULL. Removes a file that was created and has got no contents. */
void db_file_close(struct db_file *file);
DEFINE_CLEANUP(struct db_file *, db_file_close)

/* A value of a bucket. ST_NOT_FOUND: there is none. */
MUST_CHECK
enum status db_file_get(struct db_file *file, struct slice bucket, struct slice key,
                        struct buf *ret_value, struct error *ret_error);

/* A key to be added to a bucket, or to replace its value. Everything is borrowed. */
struct db_row {
    struct slice bucket, key, value;
};

/*
 * Writes the file again with these rows, which ascend by bucket and key, none of them twice. At
 * most once: the handle still reads the old file afterwards.
 */
MUST_CHECK
enum status db_file_rewrite(struct db_file *file, const struct db_row *rows, size_t count,
                            struct error *ret_error);

#endif
