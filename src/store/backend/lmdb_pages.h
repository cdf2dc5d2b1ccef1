/*
 * Whether the file of an LMDB environment can be followed: LMDB believes every number in its pages,
 * so that one which a disk has changed sends it anywhere. Read before LMDB opens the file: every
 * page that the newest state reaches is a page of its kind, holds what it says within its bounds,
 * and belongs to one tree alone; none of them is listed as free, so that none is written over.
 *
 * What the entries say is not looked at here: see backend_verify.
 */
#ifndef VIGIL_STORE_BACKEND_LMDB_PAGES_H
#define VIGIL_STORE_BACKEND_LMDB_PAGES_H

#include "base/slice.h"
#include "base/status.h"

/* ST_NOT_FOUND: there is no file, or no environment in it. *ret_page is the page of which
 * ST_DAMAGED is said. */
MUST_CHECK
enum status lmdb_pages_check(const char *dir, uint64_t *ret_page);

/*
 * Reads what is intact in a damaged file. Leaves are found through the trees and, where a page
 * above them is damaged, by themselves, as long as the list of free pages tells them from leaves of
 * earlier states. Entries are not verified: the caller does that.
 */
struct lmdb_salvage {
    void *ctx;
    /* Of the entries that follow, how many there should be; then `end`. Leaves that were found by
     * themselves come after all tables. */
    void (*begin)(void *ctx, struct slice table, uint64_t entries);
    void (*end)(void *ctx);
    enum status (*entry)(void *ctx, struct slice key, struct slice value);
    void (*broken)(void *ctx); /* entries may be missing here */
};

/*
 * Of the newest state (rank 0) or the one before it (1); slices point into the file. ST_NOT_FOUND
 * where there is none.
 */
MUST_CHECK
enum status lmdb_pages_salvage(struct slice file, unsigned rank,
                               const struct lmdb_salvage *salvage);

#endif
