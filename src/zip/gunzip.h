/*
 * Decompression of gRPC messages that a client compressed with gzip, which etcd's server accepts.
 * Responses are never compressed, because every client accepts uncompressed ones. Installed with
 * grpc_services_set_gunzip. No state; any thread.
 */
#ifndef VIGIL_ZIP_GUNZIP_H
#define VIGIL_ZIP_GUNZIP_H

#include "base/memory/budget.h"

/*
 * Appends the decompressed bytes, of one or more gzip members, to out. ST_LIMIT: they are longer
 * than bytes_max; at most one byte more is ever held. ST_MALFORMED: *ret_reason has the words of
 * Go's library. ST_NOMEM. The account is charged for what out holds, also after a failure.
 */
MUST_CHECK
enum status gunzip(struct slice bytes, size_t bytes_max, struct account *account, struct buf *out,
                   const char **ret_reason);

#endif
