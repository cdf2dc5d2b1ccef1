/*
 * A source whose bytes are sent compressed: pulls from another source a piece at a time, so that a
 * long answer is never held. Belongs to the handler whose source it wraps, and to its thread.
 *
 *     list ──fill──► packer (gzip) ──fill──► connection
 */
#ifndef VIGIL_WIRE_HTTP_GZIP_SOURCE_H
#define VIGIL_WIRE_HTTP_GZIP_SOURCE_H

#include "wire/http/exchange.h"

enum {
    HTTP_PACKER_BYTES = 128 * 1024, /* one holds at most this much */
    HTTP_PACKER_TURN = 64 * 1024,   /* of the inner source, in one go */
};

struct http_packer;

/* The inner source is borrowed. ST_NOMEM. */
MUST_CHECK
enum status http_packer_new(struct http_source *inner, struct http_packer **ret_packer);
void http_packer_free(struct http_packer *packer); /* accepts NULL */

/* For http_set_source, after the field Content-Encoding: gzip. */
struct http_source *http_packer_source(struct http_packer *packer);

#endif
