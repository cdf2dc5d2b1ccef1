/*
 * A proxy through which servers are reached, from its URL:
 *
 *     http://proxy:3128   http://user:password@proxy   https://proxy   socks5://proxy:1080
 *
 * A value; any thread.
 */
#ifndef VIGIL_CLIENT_CONNECT_PROXY_H
#define VIGIL_CLIENT_CONNECT_PROXY_H

#include "client/names/endpoint.h"

enum proxy_kind {
    PROXY_HTTP, /* with or without TLS, as its endpoint says */
    PROXY_SOCKS5,
};

/* SOCKS5 limits the user and the password to this. */
enum {
    PROXY_USER_BYTES = 256,
    PROXY_AUTHORIZATION_BYTES = 6 + (2 * PROXY_USER_BYTES + 2) / 3 * 4 + 1,
};

struct proxy {
    enum proxy_kind kind;
    struct endpoint endpoint;
    bool has_user;
    char user[PROXY_USER_BYTES], password[PROXY_USER_BYTES]; /* with has_user; not escaped */
    char authorization[PROXY_AUTHORIZATION_BYTES];           /* "Basic …"; "" without a user */
};

/* A path, a query and a fragment are ignored, as in Go. ST_INVALID: the error says what is wrong,
 * without the password. */
MUST_CHECK
enum status proxy_parse(struct slice url, struct proxy *ret_proxy, struct error *error);

#endif
