/* The part of the configuration that says in front of which kube-apiserver the server is. */
#ifndef VIGIL_CMD_SERVE_CONFIG_CONFIG_TIER_H
#define VIGIL_CMD_SERVE_CONFIG_CONFIG_TIER_H

#include "base/memory/arena.h"
#include "cmd/serve/options/options.h"
#include "net/url.h"
#include "tier/face/face.h"

#include <vigil/kube/client.h>

struct config_tier {
    const char *server; /* the URL of the kube-apiserver, for messages; NULL: there is none */
    vigil_kube_options client;
    struct tier_options options; /* borrows the client; without its log */
};

bool config_tier_is_wanted(const struct serve_options *options);

/* In front of a kube-apiserver every flag that would have no effect there is refused. */
MUST_CHECK
enum status config_tier_check_flags(const struct options *options, bool as_etcd,
                                    struct error *error);
/* Reads the kubeconfig, so that what is wrong with it ends the start. What is set is borrowed from
 * the arena and the options. Nothing is set if no kube-apiserver is wanted. */
MUST_CHECK
enum status config_tier_set(struct config_tier *tier, struct arena *arena,
                            const struct serve_options *options, struct error *error);
/* A URL on which the kube-apiserver's clients are served, parsed and as given. */
MUST_CHECK
enum status config_tier_check_url(const struct url *url, struct slice text, struct error *error);

#endif
