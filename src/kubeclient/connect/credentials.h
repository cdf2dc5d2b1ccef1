/*
 * What a client shows to a server: a token, a user and password, or a certificate; and who it wants
 * to be treated as. They come from a kubeconfig.
 *
 *     fixed        the Authorization field never changes
 *     token file   read again when a minute has passed, as in client-go
 *     exec plugin  a program is run when credentials are needed, when they have expired, and after
 *                  the server has refused them; meanwhile requests wait
 *
 *     unknown ──► running ──► known ──(expired, refused)──► running
 *                    └──► failed ──(the next request)──────────▲
 *
 * Owned by a client; all functions on its loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_H
#define VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_H

#include "base/container/list.h"
#include "base/error.h"
#include "kubeclient/connect/kubeconfig.h"

struct credentials;
struct loop;

struct credentials_hooks {
    /* The certificate has changed (exec plugin): credentials_cert and credentials_key are new. */
    void (*on_certificate)(void *ctx);
    void *ctx;
};

/* Waits until an exec plugin has finished. Embedded by its owner; zeroed except for ready, it does
 * not wait. */
struct credentials_waiter {
    void (*ready)(struct credentials_waiter *waiter);
    struct list in_credentials; /* links credentials.waiters; its links are NULL until first used */
};

/* The config is borrowed. ST_INVALID, ST_NOMEM; the error says what is wrong. */
MUST_CHECK
enum status credentials_new(struct loop *loop, const struct kubeconfig *config,
                            struct credentials_hooks hooks, struct credentials **ret_credentials,
                            struct error *error);
/* Ends a plugin that is running. */
void credentials_free(struct credentials *credentials);
DEFINE_CLEANUP(struct credentials *, credentials_free)

/*
 * The value of the Authorization field for a request that is sent now; empty: none is needed. It is
 * borrowed until the next call. ST_AGAIN: the waiter is called once, later. Other errors have a
 * text: ST_NOT_FOUND, ST_MALFORMED, ST_TIMEOUT, ST_NOMEM …
 */
MUST_CHECK
enum status credentials_get(struct credentials *credentials, struct credentials_waiter *waiter,
                            struct slice *ret_authorization, struct error *error);
/* No effect if it does not wait. */
void credentials_waiter_cancel(struct credentials_waiter *waiter);

/* The server answered 401 to a request that carried what credentials_get returned when the
 * generation was this. True: another request may have other credentials. */
bool credentials_refused(struct credentials *credentials, uint64_t generation);
/* Changes whenever the credentials change. */
uint64_t credentials_generation(const struct credentials *credentials);

/* The certificate of an exec plugin and its key, as PEM; empty: none. */
struct slice credentials_cert(const struct credentials *credentials);
struct slice credentials_key(const struct credentials *credentials);

/* Asserts every invariant; for tests. */
void credentials_check(const struct credentials *credentials);

#endif
