/*
 * Checks whether the file of an LMDB environment is consistent: LMDB trusts every number in its
 * pages, so a damaged one could make it read or write anywhere. This runs before LMDB opens the
 * file: every page that the newest state reaches must be of its kind, have contents within its
 * bounds, and belong to one tree alone; none of them may be listed as free, or it would be
 * overwritten.
 *
 * The contents of the entries are verified by backend_verify.
 */
#ifndef VIGIL_STORE_BACKEND_LMDB_PAGES_H
#define VIGIL_STORE_BACKEND_LMDB_PAGES_H

#include "base/slice.h"
#include "base/status.h"

/*
 * ST_NOT_FOUND: there is no file, or no environment in it. After ST_DAMAGED, *ret_page is the
 * damaged page.
 */
MUST_CHECK
enum status lmdb_pages_check(const char *dir, uint64_t *ret_page);

/*
 * Reads what is intact in a damaged file. Leaves are found through the trees and, where a page
 * above them is damaged, by examining all pages; the list of free pages distinguishes them from
 * leaves of earlier states. Entries are not verified: the caller does that.
 */
struct lmdb_salvage {
    void *ctx;
    /*
     * Called with the expected number of the entries that follow; after them `end` is called.
     * Leaves that were not found through a tree follow all tables.
     */
    void (*begin)(void *ctx, struct slice table, uint64_t entries);
    void (*end)(void *ctx);
    enum status (*entry)(void *ctx, struct slice key, struct slice value);
    void (*broken)(void *ctx); /* entries may be missing here */
};

/*
 * Reads the newest state (rank 0) or the one before it (1); slices point into the file.
 * ST_NOT_FOUND if there is none.
 */
MUST_CHECK
enum status lmdb_pages_salvage(struct slice file, unsigned rank,
                               const struct lmdb_salvage *salvage);

#endif
