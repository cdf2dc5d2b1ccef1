/*
 * When a server that could not be reached may be tried again. All watches of a client share it, so
 * that a thousand of them do not each find out for themselves that the server is down.
 *
 *     open ──(an attempt failed)──► closed until a time ──► open ──(an attempt failed)──► …
 *
 * The delay doubles with each failure and has a random part. Attempts that were made at the same
 * time count as one failure, and a response ends the back-off. It counts only connections that
 * cannot be made or break without an answer: a server that refuses one request, for example because
 * an extension of its API is down, may well answer others.
 *
 * Embedded in a client; the loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_SERVER_BACKOFF_H
#define VIGIL_KUBECLIENT_CONNECT_SERVER_BACKOFF_H

#include "base/clock.h"
#include "base/random.h"

#define SERVER_BACKOFF_MIN_NS (100 * NS_PER_MS)
#define SERVER_BACKOFF_MAX_NS (10 * NS_PER_S)

/* Zeroed, it is open. */
struct server_backoff {
    int64_t delay_ns; /* the last one; 0: the last attempt succeeded */
    int64_t until_ns;
};

/* An attempt that began at started_ns was answered; or it was not. */
void server_backoff_succeeded(struct server_backoff *backoff);
void server_backoff_failed(struct server_backoff *backoff, int64_t started_ns, int64_t now_ns,
                           struct random *random);

/* How long to wait before an attempt, so that attempts of many requests are spread; 0: not at all.
 */
int64_t server_backoff_delay_ns(const struct server_backoff *backoff, int64_t now_ns,
                                struct random *random);

#endif
