/*
 * What a snapshot file holds in short, number for number as `etcdutl snapshot status` says it: a
 * checksum over all buckets, the newest revision, the keys there are, the size. All of the file is
 * read, and all that is read is checked.
 */
#ifndef VIGIL_IMPORT_STATUS_H
#define VIGIL_IMPORT_STATUS_H

#include "import/db.h"

struct import_status {
    uint32_t hash;
    int64_t revision;
    uint64_t total_keys;
    uint64_t total_bytes;
    char version[16]; /* of the storage; "" before 3.6 */
};

/* Memory: the names of the keys there are. */
MUST_CHECK
enum status import_status_read(struct import_source *source, struct import_progress *progress,
                               struct import_status *ret_status, struct error *ret_error);

#endif
