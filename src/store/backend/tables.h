/*
 * What the checkpoint's tables contain, as plain values: numbers, versions and segments. Rows are
 * in store/record/row.h. store/backend/backend.h reads and writes them.
 */
#ifndef VIGIL_STORE_BACKEND_TABLES_H
#define VIGIL_STORE_BACKEND_TABLES_H

#include "base/slice.h"
#include "store/record/row.h"

#include <stdbool.h>

/* Numbers in the meta table, 64 bits each. Absent ones read as the given default. */
enum backend_meta {
    BACKEND_INDEX,            /* log index of the checkpoint, which contains everything up to it */
    BACKEND_REVISION,         /* the revision at that index */
    BACKEND_COMPACT_REVISION, /* the compact revision at that index; -1 before the first */
    BACKEND_TRIMMED,          /* versions superseded before this revision are deleted here */
    BACKEND_DB_BYTES,
    BACKEND_DB_BYTES_IN_USE,
    BACKEND_CLUSTER_ID,
    BACKEND_MEMBER_ID,
    BACKEND_TERM, /* number of starts of the server */
    /* The segment that is being cleaned and its copy; some versions here may still have locations
     * in the old one: see store/upkeep/cleaner.h. 0: none. */
    BACKEND_MOVED_FROM,
    BACKEND_MOVED_TO,
    /* Maintained by the backend itself: see backend_verify. */
    BACKEND_SUM_OF_ENTRIES, /* sum of versions and rows */
    BACKEND_SUM,            /* sum of that, the segments and all other numbers; must be last */
    BACKEND_META_COUNT
};

struct backend_numbers {
    int64_t values[BACKEND_META_COUNT];
    bool present[BACKEND_META_COUNT];
};

struct backend_version_id {
    int64_t revision;
    uint32_t sub;
};

struct backend_version {
    struct backend_version_id id;
    struct backend_version_id prev; /* revision 0: none */
    int64_t create_revision;        /* 0 for a tombstone */
    int64_t version;
    int64_t lease;
    uint64_t loc;
    uint32_t field_bytes; /* as stored, tombstones too */
    struct slice key;
};

struct backend_segment {
    uint64_t id;
    uint64_t first_index, last_index; /* last_index 0: still being written */
    uint64_t used_bytes;
    uint64_t live_bytes; /* size of changes that versions refer to */
};

#endif
