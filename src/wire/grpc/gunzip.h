/*
 * Messages that a client has compressed with gzip, which etcd's server takes. Nothing is sent
 * compressed: every client takes what is not.
 */
#ifndef VIGIL_WIRE_GRPC_GUNZIP_H
#define VIGIL_WIRE_GRPC_GUNZIP_H

#include "base/buf.h"

/*
 * Appends what the bytes come to: one or more members as gzip writes them. ST_LIMIT past bytes_max,
 * of which no more is ever held; ST_MALFORMED, and *ret_reason is in the words of Go's library.
 */
MUST_CHECK
enum status gunzip(struct slice bytes, size_t bytes_max, struct buf *out, const char **ret_reason);

#endif
