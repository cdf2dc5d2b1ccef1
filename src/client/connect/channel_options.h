/* How a program wants its channel (client/connect/channel.h): endpoints, TLS, credentials and
 * times. */
#ifndef VIGIL_CLIENT_CONNECT_CHANNEL_OPTIONS_H
#define VIGIL_CLIENT_CONNECT_CHANNEL_OPTIONS_H

#include "base/error.h"
#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct endpoint_list;
struct tls_client_source;

struct channel_options {
    const char *endpoints; /* separated by commas */
    const char *srv_domain, *srv_name;
    const char *ca_file, *cert_file, *key_file, *server_name;
    bool insecure_skip_verify;
    const char *user, *password, *token;
    /* How calls in the name of others are marked: the value of grpcgateway-accept. NULL: "vigil".
     */
    const char *via;
    int64_t connect_timeout_ns, keepalive_ns, keepalive_timeout_ns;
    int64_t backoff_min_ns, backoff_max_ns;
    size_t receive_bytes_max;
    /* Called on the loop's thread with one line; may be NULL. */
    void (*log)(void *ctx, int level, const char *text);
    void *ctx;
};

/* A copy that owns its texts. ST_NOMEM: the copy has none. */
MUST_CHECK
enum status channel_options_copy(const struct channel_options *options,
                                 struct channel_options *ret_copy);
void channel_options_fini(struct channel_options *copy);
/* Appends "Basic …" if there is a user, otherwise nothing. ST_NOMEM. */
MUST_CHECK
enum status channel_options_basic_auth(const struct channel_options *options, struct buf *to);

/* What connections with TLS need. *ret_tls stays as it is if neither an option nor an endpoint asks
 * for TLS. */
MUST_CHECK
enum status channel_options_open_tls(const struct channel_options *options,
                                     const struct endpoint_list *endpoints,
                                     struct tls_client_source **ret_tls, struct error *error);

#endif
