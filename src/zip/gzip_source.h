/*
 * A response body that is compressed while it is sent. It pulls from another source piece by piece,
 * so that a long answer is never held as a whole. Owned by the handler whose source it compresses;
 * used on the connection's thread.
 *
 *     list ──fill──► gzip_source ──fill──► connection
 */
#ifndef VIGIL_ZIP_GZIP_SOURCE_H
#define VIGIL_ZIP_GZIP_SOURCE_H

#include "wire/http/exchange.h"

enum {
    GZIP_SOURCE_BYTES = 128 * 1024, /* memory of one source, at most */
    GZIP_SOURCE_TURN = 64 * 1024,   /* bytes that one fill takes from the inner source, at most */
};

struct gzip_source;

/* The inner source is borrowed. ST_NOMEM. */
MUST_CHECK
enum status gzip_source_new(struct http_source *inner, struct gzip_source **ret_gzip);
void gzip_source_free(struct gzip_source *gzip); /* accepts NULL */

/* For http_set_source, after the field "Content-Encoding: gzip" was added. */
struct http_source *gzip_source_output(struct gzip_source *gzip);

#endif
