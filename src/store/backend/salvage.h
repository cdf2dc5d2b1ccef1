/*
 * The entries that can still be read from a damaged checkpoint in LMDB, for a repair. Some of their
 * bytes may be wrong: the caller checks versions against the log, and everything against the sums
 * that the checkpoint keeps. For one thread.
 */
#ifndef VIGIL_STORE_BACKEND_SALVAGE_H
#define VIGIL_STORE_BACKEND_SALVAGE_H

#include "base/buf.h"
#include "store/backend/backend.h"

struct salvage_version {
    struct backend_version version;
    bool joined; /* no entry is missing between it and the one before it */
    bool bad;    /* set by the reader: it is not what was written, and cannot be put right */
};

/* Between these two, ends included, every version that the checkpoint had was found. */
struct salvage_span {
    struct backend_version_id from, to;
};

enum salvage_table {
    SALVAGE_UNKNOWN,
    SALVAGE_VERSIONS,
    SALVAGE_ROWS,
    SALVAGE_SEGMENTS,
    SALVAGE_NUMBERS
};

struct salvage {
    struct slice file;   /* mapped; keys and values point into it */
    struct buf versions; /* struct salvage_version, as they were found, then in order */
    struct buf rows;     /* struct row */
    struct buf segments; /* struct backend_segment */
    struct buf spans;    /* struct salvage_span, in order; made by salvage_settle */
    int64_t numbers[BACKEND_META_COUNT];
    bool has_number[BACKEND_META_COUNT];
    uint64_t rows_expected;   /* as the table said; 0 if it was not found */
    enum salvage_table table; /* while it is read, and … */
    bool whole;               /* … no entry is missing before the next one */
    bool ends;                /* none is missing after the version before `end` */
    size_t end;
};

/* rank: of the state, see lmdb_pages_salvage. ST_NOT_FOUND: there is no such state. */
MUST_CHECK
enum status salvage_open(struct salvage *salvage, const char *dir, unsigned rank);
void salvage_close(struct salvage *salvage); /* a zeroed one may be closed */

static inline size_t salvage_version_count(const struct salvage *salvage)
{
    return salvage->versions.len / sizeof(struct salvage_version);
}
static inline struct salvage_version *salvage_versions(const struct salvage *salvage)
{
    return (struct salvage_version *)(void *)salvage->versions.ptr;
}

/* After bad entries are marked: drops them and sorts the rest. */
MUST_CHECK
enum status salvage_settle(struct salvage *salvage);
/* Then: whether the checkpoint had it; and whether it did not, for certain. */
bool salvage_has(const struct salvage *salvage, struct backend_version_id id);
bool salvage_lacks(const struct salvage *salvage, struct backend_version_id id);

/* Whether numbers and segments are as they were written; and versions and rows. */
MUST_CHECK
enum status salvage_sums(const struct salvage *salvage, bool *ret_numbers, bool *ret_entries);

#endif
