/*
 * Finds the addresses of servers in place of the resolver (client/names/resolver.h), for servers
 * whose names are not those of hosts. On the loop's thread.
 */
#ifndef VIGIL_CLIENT_NAMES_ADDRESS_SOURCE_H
#define VIGIL_CLIENT_NAMES_ADDRESS_SOURCE_H

#include "client/names/resolver.h"

/* A search that is under way; embedded by the source in its own state. */
struct address_search {
    /* done is not called any more, and the search is freed. Not after done. */
    void (*cancel)(struct address_search *search);
};

struct address_source {
    /* As resolver_lookup_host: done follows exactly once, never from within. The reason of a
     * failure is used as it is. Statuses: ST_NOMEM. */
    enum status (*start)(void *ctx, struct lookup_hooks hooks, struct address_search **ret_search);
    void *ctx;
};

#endif
