/*
 * The URLs a server listens on, as etcd's flags take them:
 *
 *     http://127.0.0.1:2379  https://[::1]:2379  unix:///run/x.sock  unix://localhost:m1
 *
 * A Unix URL names a file: what follows "//", host and path together.
 */
#ifndef VIGIL_NET_URL_H
#define VIGIL_NET_URL_H

#include "base/error.h"
#include "io/address.h"

struct url {
    bool secure; /* https, unixs */
    struct address address;
};

/* The error's text is etcd's. */
MUST_CHECK
enum status url_parse(struct slice text, struct url *ret_url, struct error *error);

/* For a URL that is only advertised: its host may be any name. */
MUST_CHECK
enum status url_check(struct slice text, struct error *error);

/* The parts of a URL, borrowed from its text. */
struct url_parts {
    bool secure, local;
    struct slice host; /* without brackets; not checked */
    uint16_t port;
    struct slice path; /* local: of the socket; otherwise empty */
};
MUST_CHECK
enum status url_split(struct slice text, struct url_parts *ret_parts, struct error *error);
/* The same for "host:port" without a scheme. */
MUST_CHECK
enum status url_split_host(struct slice text, struct url_parts *ret_parts, struct error *error);
/* Whether Go accepts it as a host name. */
bool url_is_host(struct slice host);

/* "http://127.0.0.1:2379" */
enum { URL_TEXT_BYTES = ADDRESS_TEXT_BYTES + 16 };
void url_format(const struct url *url, char text[URL_TEXT_BYTES]);

#endif
