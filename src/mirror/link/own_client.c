#include "mirror/link/own_client.h"

#include "base/clock.h"

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static int64_t ms_or(int64_t ns, int64_t otherwise_ns)
{
    return (ns ? ns : otherwise_ns) / NS_PER_MS;
}

enum status own_client_new(const struct upstream_options *options, vigil_client **ret_client,
                           struct error *error)
{
    vigil_error why;
    vigil_options client;
    vigil_options_init(&client);
    client.endpoints = options->endpoints;
    client.ca_file = text_or_null(options->ca_file);
    client.cert_file = text_or_null(options->cert_file);
    client.key_file = text_or_null(options->key_file);
    client.server_name = text_or_null(options->server_name);
    client.insecure_skip_verify = options->insecure_skip_verify;
    client.user = text_or_null(options->user);
    client.password = client.user ? options->password : NULL;
    client.connect_timeout_ms = options->connect_timeout_ns
                                    ? options->connect_timeout_ns / NS_PER_MS
                                    : client.connect_timeout_ms;
    client.keepalive_ms = ms_or(options->keepalive_ns, UPSTREAM_KEEPALIVE_NS);
    client.keepalive_timeout_ms =
        ms_or(options->keepalive_timeout_ns, UPSTREAM_KEEPALIVE_TIMEOUT_NS);
    client.receive_bytes_max = OWN_CLIENT_RECEIVE_BYTES_MAX;
    int code = vigil_client_new(&client, ret_client, &why);
    if (code == VIGIL_OK)
        return ST_OK;
    return error_set(error, code == VIGIL_ERROR_ARGUMENT ? ST_INVALID : ST_IO,
                     "the cluster cannot be followed: %s", why.text);
}
