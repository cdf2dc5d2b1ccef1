/*
 * Messages that a client has compressed with gzip, which etcd's server takes. Nothing is sent
 * compressed: every client takes what is not.
 */
#ifndef VIGIL_WIRE_GRPC_GUNZIP_H
#define VIGIL_WIRE_GRPC_GUNZIP_H

#include "base/memory/budget.h"

/*
 * Appends what the bytes come to: one or more members as gzip writes them. ST_LIMIT past bytes_max,
 * of which no more is ever held; ST_MALFORMED, and *ret_reason is in the words of Go's library.
 * ST_NOMEM. The account is charged with what out holds, also after a failure.
 */
MUST_CHECK
enum status gunzip(struct slice bytes, size_t bytes_max, struct account *account, struct buf *out,
                   const char **ret_reason);

#endif
