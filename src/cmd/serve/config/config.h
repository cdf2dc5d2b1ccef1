/*
 * The configuration that the flags of `vigil serve` describe: addresses to listen on, the identity
 * of the member, limits in the units of the layers that enforce them. Checks flags against each
 * other.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_CONFIG_H
#define VIGIL_CMD_SERVE_CONFIG_CONFIG_H

#include "base/memory/arena.h"
#include "cmd/serve/config/config_tier.h"
#include "cmd/serve/options/options.h"
#include "server/server.h"

struct serve_config {
    struct server_config server; /* borrows from here and from the options; without its face */
    struct config_tier tier;     /* tier.server is not NULL in front of a kube-apiserver */
    /* The URLs as given, server.listen_count of them: for clients first, then for HTTP, then for
     * metrics. */
    struct slice *listen_texts;
    size_t client_count;                     /* number of --listen-client-urls */
    struct kube_tokens *kube_tokens;         /* NULL: none */
    struct kube_account_keys *kube_accounts; /* the same */
    /* Why the Kubernetes API is not served by default; NULL: it is, or a flag decides. */
    const char *kube_withheld;
    uint64_t member_id, cluster_id;
    struct url *urls;
    enum server_role *roles;
    struct arena arena; /* all of the above */
};

/* as_etcd: the default data directory is named after the member. On failure nothing is left. */
MUST_CHECK
enum status serve_config_init(struct serve_config *config, const struct serve_options *options,
                              bool as_etcd, struct error *error);
/* Copies the client URLs with the ports that were chosen, so that they outlive the server. */
void serve_config_set_client_urls(struct serve_config *config, const struct slice *urls);
void serve_config_fini(struct serve_config *config);

#endif
