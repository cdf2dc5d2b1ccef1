/*
 * The TLS of a server's listeners: opens the files that the flags name, wraps the protocols of http
 * URLs for https, and logs refused clients and changed files in etcd's words. Owned by the server;
 * outlives its listeners.
 */
#ifndef VIGIL_SERVER_TLS_H
#define VIGIL_SERVER_TLS_H

#include "net/tls/self_signed.h"
#include "net/tls/tls.h"
#include "net/url.h"

struct server_tls;

struct server_tls_config {
    struct tls_options options;
    bool automatic; /* create a self-signed certificate */
    int64_t automatic_years;
    struct net_tls_limits limits; /* handshakes_max: of all shards together */
};

/* Borrows the config. A self-signed certificate is created for the URLs, in the data directory. */
MUST_CHECK
enum status server_tls_new(const struct server_tls_config *config, const char *data_dir,
                           const struct url *urls, size_t url_count, unsigned shards,
                           struct server_tls **ret_tls, struct error *error);
void server_tls_free(struct server_tls *tls);
DEFINE_CLEANUP(struct server_tls *, server_tls_free)

/* Logs which files are used. */
void server_tls_tell(const struct tls_options *options);

/* Any thread. */
struct tls_stats server_tls_stats(struct server_tls *tls);

/* The protocol of an https URL that carries `inner`. plain_too: the same port serves http as well.
 * Lives as long as the server_tls. */
const struct protocol_kind *server_tls_wrap(struct server_tls *tls,
                                            const struct protocol_kind *inner, bool plain_too);

#endif
