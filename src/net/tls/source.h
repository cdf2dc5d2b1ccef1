/*
 * Provides the context for handshakes of a listener or of a client: made from the files at the
 * start, and again when they have changed. Each handshake checks the time stamps of the files (four
 * system calls, compared with hundreds of microseconds of cryptography), so that a replaced
 * certificate is used from the next connection on, as in etcd. Open connections are not affected.
 *
 * If files do not match, are missing or damaged, the old context stays in use, and the failure is
 * reported once per state of the files: a certificate and its key are replaced one after the other.
 *
 * Any thread; takes a lock.
 */
#ifndef VIGIL_NET_TLS_SOURCE_H
#define VIGIL_NET_TLS_SOURCE_H

#include "net/stats.h"
#include "net/tls/context.h"

struct tls_source;

/* Called on the thread that gets a context, one call at a time. Every function may be NULL. */
struct tls_source_hooks {
    void (*on_reload)(void *ctx);
    void (*on_failure)(void *ctx, const char *why); /* the old context stays in use */
    void *ctx;
};

/* The recipe comes from server_context.h or client.h. The error names the file and what is wrong
 * with it. */
MUST_CHECK
enum status tls_source_new(const struct tls_recipe *recipe, struct tls_source_hooks hooks,
                           struct tls_source **ret_source, struct error *error);
void tls_source_free(struct tls_source *source);
DEFINE_CLEANUP(struct tls_source *, tls_source_free)

/* Everything except the rejections. Any thread. */
struct tls_stats tls_source_stats(struct tls_source *source);

/* The newest valid context; the caller unrefs it. */
struct tls_context *tls_source_get(struct tls_source *source);

#endif
