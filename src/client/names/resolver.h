/*
 * Name lookup that does not block: the addresses of a host, and the targets of DNS SRV records.
 *
 *     start ──► number, localhost: known at once ──────────────► end of this turn ──► done
 *       └─────► queue ──► helper thread (getaddrinfo, res_nquery) ──► mailbox ────────┘
 *
 * Helper threads are started for lookups that need one, and end when the queue is empty. A lookup
 * may be cancelled at any time. One that never returns keeps its thread, but neither its owner nor
 * the resolver, which are freed without waiting.
 *
 * Everything is called on the loop's thread, and so is `done`, exactly once and never from within
 * start. Missing memory is reported.
 */
#ifndef VIGIL_CLIENT_NAMES_RESOLVER_H
#define VIGIL_CLIENT_NAMES_RESOLVER_H

#include "base/error.h"
#include "base/slice.h"
#include "client/names/srv.h"
#include "io/address.h"

struct loop;
struct lookup;
struct resolver;

enum {
    RESOLVER_ADDRESSES_MAX = 32, /* limit on the addresses of one host; more are ignored */
    RESOLVER_THREADS_MAX = 4,    /* lookups that run at the same time; others wait */
};

/* Where answers come from: the system, or a test. */
struct resolver_backend {
    /* Writes the addresses (any port) of a host; room is RESOLVER_ADDRESSES_MAX. The error is
     * without the name: "no such host". */
    enum status (*host)(void *ctx, const char *host, struct address *addresses, size_t *ret_count,
                        struct error *error);
    /* Writes the answer of DNS to a query for SRV records; room is SRV_ANSWER_BYTES. */
    enum status (*srv)(void *ctx, const char *name, uint8_t *answer, size_t *ret_len,
                       struct error *error);
    void *ctx;
    bool blocks; /* both are called on a helper thread; otherwise on the loop's */
};

/* The operating system's resolver. */
extern const struct resolver_backend resolver_system;

/* The first or last of its DNS servers with the port, "127.0.0.1:53" or "[::1]:53"; "": there is
 * none. A name that does not exist was denied by the first; otherwise the last one has failed. */
enum { RESOLVER_SERVER_BYTES = 64 };
void resolver_system_server(bool is_last, char ret_text[RESOLVER_SERVER_BYTES]);

/* The backend is borrowed, with its ctx as long as a helper thread runs. seed: for the order of
 * targets. */
MUST_CHECK
enum status resolver_new(struct loop *loop, const struct resolver_backend *backend, uint64_t seed,
                         struct resolver **ret_resolver);
void resolver_free(struct resolver *resolver); /* no lookup may be under way */
DEFINE_CLEANUP(struct resolver *, resolver_free)

/* Borrowed during done. */
struct lookup_result {
    enum status status; /* ST_OK; ST_NOT_FOUND, ST_AGAIN, ST_MALFORMED, ST_NOMEM, ST_IO */
    const char *reason; /* unless ST_OK: "lookup example.com: no such host" */
    const struct address *addresses; /* addresses of a host, in the order in which to try them */
    size_t address_count;
    const struct srv_target *targets; /* in the order in which to try them */
    size_t target_count;
};

struct lookup_hooks {
    void (*done)(void *owner, const struct lookup_result *result); /* the lookup is freed */
    void *owner;
};

/* host is a name, a numeric address without brackets, or "" for this machine. ST_INVALID: it is too
 * long or has a NUL. */
MUST_CHECK
enum status resolver_lookup_host(struct resolver *resolver, struct slice host, uint16_t port,
                                 struct lookup_hooks hooks, struct lookup **ret_lookup);
/* name is the whole name of the records, "_etcd-client._tcp.example.com". */
MUST_CHECK
enum status resolver_lookup_srv(struct resolver *resolver, struct slice name,
                                struct lookup_hooks hooks, struct lookup **ret_lookup);

/* done is not called any more, and the lookup is freed. Not after done; accepts NULL. */
void lookup_cancel(struct lookup *lookup);

/* Asserts every invariant; for tests. */
void resolver_check(struct resolver *resolver);
/* Helper threads that run now, also those whose lookup was cancelled; for tests. */
unsigned resolver_threads(struct resolver *resolver);

#endif
