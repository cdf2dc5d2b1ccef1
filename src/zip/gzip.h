/* HTTP answers that are compressed with gzip because the client accepts it. */
#ifndef VIGIL_ZIP_GZIP_H
#define VIGIL_ZIP_GZIP_H

#include "base/buf.h"
#include "wire/http/exchange.h"

/* Whether Accept-Encoding names gzip with a weight other than 0. */
bool http_accepts_gzip(const struct http_request *request);

/* Appends the compressed bytes to out, at the fastest level. ST_NOMEM; ST_LIMIT above 2 GiB. */
MUST_CHECK
enum status gzip(struct slice bytes, struct buf *out);

#endif
