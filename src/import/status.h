/* The summary of a snapshot file, with the same numbers as `etcdutl snapshot status`: a checksum
 * over all buckets, the newest revision, the number of keys, the size. The whole file is read and
 * checked. */
#ifndef VIGIL_IMPORT_STATUS_H
#define VIGIL_IMPORT_STATUS_H

#include "import/db.h"

struct import_status {
    uint32_t hash;
    int64_t revision;
    uint64_t total_keys;
    /* Entries of all buckets: what etcdctl 3.4 shows as the number of keys. */
    uint64_t total_entries;
    uint64_t total_bytes;
    char version[16]; /* version of the storage; "" before 3.6 */
};

/* Memory: the names of the keys that exist. */
MUST_CHECK
enum status import_status_read(struct import_source *source, struct import_progress *progress,
                               struct import_status *ret_status, struct error *ret_error);

#endif
