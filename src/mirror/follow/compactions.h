/*
 * Looks for the cluster's compact revision now and then, with the search of
 * mirror/follow/compact_search.h and serializable reads, which cost the cluster little.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_COMPACTIONS_H
#define VIGIL_MIRROR_FOLLOW_COMPACTIONS_H

#include "base/slice.h"

#include <vigil/client.h>

struct compactions;

struct compactions_options {
    vigil_client *client;
    struct slice key; /* one that may be read; borrowed */
    int64_t every_ns;
    /* Before each search: the newest revision of the cluster, and the compact revision that is
     * known; 0: none. */
    int64_t (*newest)(void *ctx, int64_t *ret_known);
    void (*found)(void *ctx, int64_t revision); /* at the end of each search */
    void *ctx;
};

struct compactions *compactions_new(const struct compactions_options *options); /* aborts without
                                                                                   memory */
void compactions_free(struct compactions *compactions);                         /* accepts NULL */

/* Begins with a search at once. */
void compactions_start(struct compactions *compactions);
/* No effect if it was not started. */
void compactions_stop(struct compactions *compactions);

#endif
