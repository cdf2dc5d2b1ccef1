/* Answers that are compressed because the client asked for it. */
#ifndef VIGIL_WIRE_HTTP_GZIP_H
#define VIGIL_WIRE_HTTP_GZIP_H

#include "base/buf.h"
#include "wire/http/exchange.h"

/* Whether Accept-Encoding names gzip, and not with a weight of 0. */
bool http_accepts_gzip(const struct http_request *request);

/* Appends bytes, compressed quickly rather than well. ST_NOMEM, ST_LIMIT past 2 GiB. */
MUST_CHECK
enum status http_gzip(struct slice bytes, struct buf *out);

#endif
