/*
 * Builds a new data directory from everything that can still be read of a damaged one, for `vigil
 * salvage` and `vigil repair`. The damaged directory is only read. Whatever is damaged or missing,
 * the FORMAT file, heads and seals of segments, records, the mark, the checkpoint, it continues:
 *
 *   checkpoint   intact, put right, or made again from the log (store/rebuild.h): which versions
 *                there are
 *   tail         the records after it, as far as they can be read
 *   check        every version is read; one that cannot be read is lost, and is reported
 *   build        the versions are written in order (store/builder.h)
 *
 * If nothing is lost, history is kept. Otherwise a reader of old revisions could get wrong answers:
 * the new store is compacted to its newest revision, which does not decrease, and a key whose
 * newest version is lost does not exist there, because its older value would be wrong.
 *
 * Aborts when memory is exhausted; needs as much as a server with the same data. For one thread.
 */
#ifndef VIGIL_STORE_SALVAGE_H
#define VIGIL_STORE_SALVAGE_H

#include "base/error.h"
#include "store/datadir.h"
#include "store/rebuild.h"

struct store_salvage_options {
    struct fs *fs;
    const char *dir; /* the damaged data directory */
    bool is_locked;  /* the caller holds its lock */
    const char *to;  /* created; must be new or empty. No server may use it before this ends */
    size_t checkpoint_map_bytes;
    uint64_t salt; /* random, for the new log */
    void (*lost)(void *ctx, const struct store_lost *lost);
    void (*gap)(void *ctx, const struct store_gap *gap);
    void (*progress)(void *ctx, uint64_t done, uint64_t all); /* versions written; may be NULL */
    void *ctx;
};

struct store_salvage {
    enum datadir_format format;
    unsigned heads_mended;           /* damaged heads of segments */
    unsigned unreadable;             /* segments that could not be read at all */
    struct store_rebuild checkpoint; /* how its contents were found */
    uint64_t keys, versions;         /* that were written */
    int64_t revision;
    uint64_t lost_versions;
    uint64_t lost_current; /* how many of these are current values of keys */
    uint64_t gaps;
    bool has_history; /* otherwise it is compacted to the newest revision */
};

/* ST_NOT_FOUND: there is nothing of a data directory. ST_WRONG_FORMAT, ST_IN_USE, or any failure to
 * write. */
MUST_CHECK
enum status store_salvage(const struct store_salvage_options *options,
                          struct store_salvage *ret_salvage, struct error *ret_error);

#endif
