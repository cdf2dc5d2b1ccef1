/* What the sources of a link share. */
#ifndef VIGIL_TIER_LINK_LINK_PRIVATE_H
#define VIGIL_TIER_LINK_LINK_PRIVATE_H

#include "base/container/list.h"
#include "tier/link/link.h"

struct tier_link {
    struct loop *loop;
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
    struct kubeconfig config;
    struct slice path_prefix; /* borrows from the config */
    char *user_agent;         /* owned */
    struct resolver *resolver;
    /* tier_tls.in_link, those of `reviews` and `own`, the one in use first. Without TLS there is
     * none. */
    struct list own_tls;
    struct tls_client_source *callers_tls; /* NULL without TLS */
    struct http_pool *reviews, *own, *callers;
    struct credentials *credentials;
    size_t calls; /* under way */
};

#endif
