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

/* "http://127.0.0.1:2379" */
enum { URL_TEXT_BYTES = ADDRESS_TEXT_BYTES + 16 };
void url_format(const struct url *url, char text[URL_TEXT_BYTES]);

#endif
