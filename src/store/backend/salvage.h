/*
 * The entries that can still be read from a damaged checkpoint in LMDB, for a repair. Some of their
 * bytes may be wrong: the caller checks versions against the log, and everything against the sums
 * that the checkpoint keeps. For one thread.
 */
#ifndef VIGIL_STORE_BACKEND_SALVAGE_H
#define VIGIL_STORE_BACKEND_SALVAGE_H

#include "base/buf.h"
#include "io/file.h"
#include "store/backend/backend.h"

struct salvage_version {
    struct backend_version version;
    bool joined; /* no entry is missing between it and the previous one */
    bool bad;    /* set by the caller: it is not what was written, and cannot be corrected */
};

/* Every version that the checkpoint had between these two, inclusive, was found. */
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
    struct file *opened; /* owned */
    struct slice file;   /* mapped; keys and values point into it */
    struct buf versions; /* array of struct salvage_version, as found, later in order */
    struct buf rows;     /* array of struct row */
    struct buf segments; /* array of struct backend_segment */
    struct buf spans;    /* array of struct salvage_span, in order; made by salvage_settle */
    int64_t numbers[BACKEND_META_COUNT];
    bool has_number[BACKEND_META_COUNT];
    uint64_t rows_expected;   /* as stated in the table; 0 if it was not found */
    enum salvage_table table; /* while it is read, and … */
    bool whole;               /* … no entry is missing before the next one */
    bool ends;                /* no version is missing before `end` */
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
/* Afterwards: whether the checkpoint had the version; and whether it certainly did not. */
bool salvage_has(const struct salvage *salvage, struct backend_version_id id);
bool salvage_lacks(const struct salvage *salvage, struct backend_version_id id);

/* Whether numbers and segments match their sum; and versions and rows. */
MUST_CHECK
enum status salvage_sums(const struct salvage *salvage, bool *ret_numbers, bool *ret_entries);

#endif
