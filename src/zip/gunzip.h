/*
 * Decompression of what a peer compressed with gzip: gRPC messages of clients, which etcd's server
 * accepts, and answers of webhooks. Responses of gRPC are never compressed, because every client
 * accepts uncompressed ones. Installed with grpc_services_set_gunzip. Any thread.
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

/* The same in steps, so that none of them takes long. Owned by one caller. */
struct gunzip_stream;

/* The bytes are borrowed. ST_MALFORMED, ST_LIMIT, ST_NOMEM, as above. */
MUST_CHECK
enum status gunzip_stream_new(struct slice bytes, struct gunzip_stream **ret_stream,
                              const char **ret_reason);
void gunzip_stream_free(struct gunzip_stream *stream); /* accepts NULL */
/* Appends at most step_bytes. ST_OK: everything was decompressed. ST_AGAIN: there is more. The
 * others as above. */
MUST_CHECK
enum status gunzip_stream_step(struct gunzip_stream *stream, size_t step_bytes, size_t bytes_max,
                               struct account *account, struct buf *out, const char **ret_reason);

#endif
