/*
 * Where a request comes from, according to its fields. A page in a browser can send requests to a
 * server on the loopback interface of its machine, and names of its own site can be made to resolve
 * to it. The fields Host, Origin and Sec-Fetch-Site, which the browser writes and a page cannot
 * change, distinguish such requests from those of programs.
 */
#ifndef VIGIL_WIRE_HTTP_ORIGIN_H
#define VIGIL_WIRE_HTTP_ORIGIN_H

#include "wire/http/exchange.h"

/* A host without its port, as Go's net.SplitHostPort; the whole text if that fails. */
struct slice http_host_name(struct slice host);

/* localhost, or an address of the loopback network, with or without a port. */
bool http_host_is_loopback(struct slice host);

/* The request was sent by a page of another origin. *ret_origin: that origin, or empty if the
 * browser does not send it. */
bool http_is_foreign(const struct http_request *request, struct slice *ret_origin);

#endif
