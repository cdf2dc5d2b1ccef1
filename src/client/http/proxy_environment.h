/*
 * The proxy that the environment of the program names, as in Go: HTTPS_PROXY for servers with TLS,
 * HTTP_PROXY for others, except for those that NO_PROXY lists:
 *
 *     NO_PROXY=10.0.0.0/8,192.0.2.1:6443,example.com,.internal,*.test
 *
 * The lower-case names are used, too. Loopback addresses and "localhost" never have a proxy.
 */
#ifndef VIGIL_CLIENT_HTTP_PROXY_ENVIRONMENT_H
#define VIGIL_CLIENT_HTTP_PROXY_ENVIRONMENT_H

#include "client/names/endpoint.h"

/* getenv, or a table in tests. */
typedef char *proxy_environment_fn(const char *name);

/* *ret_url is owned, and NULL without a proxy. A URL without a scheme gets "http://". ST_NOMEM. */
MUST_CHECK
enum status proxy_environment_find(const struct endpoint *server, bool secure,
                                   proxy_environment_fn *get, char **ret_url);

#endif
