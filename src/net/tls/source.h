/*
 * Where handshakes get their context: made from the files at the start, and again when they have
 * changed. Each handshake looks at the files' stamps (four system calls, beside some hundred
 * microseconds of arithmetic), so that a certificate that was replaced is used from the next
 * connection on, as in etcd. Connections that are open do not notice.
 *
 * Files that do not fit together, are gone or damaged leave the old context in use, and are told
 * once for each such state: who replaces a certificate and a key does it one after the other.
 *
 * Shared by all shards; takes a lock.
 */
#ifndef VIGIL_NET_TLS_SOURCE_H
#define VIGIL_NET_TLS_SOURCE_H

#include "net/stats.h"
#include "net/tls/context.h"

struct tls_source;

/* Called from any shard's thread, one at a time. Every function may be NULL. */
struct tls_source_hooks {
    void (*on_reload)(void *ctx);
    void (*on_failure)(void *ctx, const char *why); /* the old context stays in use */
    void *ctx;
};

/* Borrows the options. The error names the file and what is wrong with it. */
MUST_CHECK
enum status tls_source_new(const struct tls_options *options, struct tls_source_hooks hooks,
                           struct tls_source **ret_source, struct error *error);
void tls_source_free(struct tls_source *source);
DEFINE_CLEANUP(struct tls_source *, tls_source_free)

/* All but the rejections. Any thread. */
struct tls_stats tls_source_stats(struct tls_source *source);

/* The newest that works, for the caller to unref. */
struct tls_context *tls_source_get(struct tls_source *source);

#endif
