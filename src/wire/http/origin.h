/*
 * Where a request says it comes from and goes to. A page in a browser can send requests to a server
 * on the loopback of its machine, and names of its own site can be made to point there; the fields
 * Host, Origin and Sec-Fetch-Site, which the browser writes and no page can change, tell them apart
 * from programs.
 */
#ifndef VIGIL_WIRE_HTTP_ORIGIN_H
#define VIGIL_WIRE_HTTP_ORIGIN_H

#include "wire/http/exchange.h"

/* A host without its port, as Go's net.SplitHostPort, and the whole text where that fails. */
struct slice http_host_name(struct slice host);

/* localhost, or an address of the loopback network, with or without a port. */
bool http_host_is_loopback(struct slice host);

/* A page of another origin than the one the request goes to has sent it; which one is returned, as
 * far as the browser says so. */
bool http_is_foreign(const struct http_request *request, struct slice *ret_origin);

#endif
