/*
 * Which callers may read which ranges, as the cluster has answered within the last second. A caller
 * is a token, or none. One for each shard, on its thread.
 *
 *     waiter ──► may all read everything? ──► may the caller? ──► may the caller read this?
 *
 * The question is a range with the caller's token at a revision that does not exist yet: etcd
 * refuses it with the caller's missing permission, or else as a future revision. It is linearizable
 * while the mirror follows the cluster, and serializable while it does not: then no member may know
 * more, and nothing new is shown.
 *
 * If a call without a token is answered so for all keys, authentication is disabled, and no other
 * caller needs a question until that is a second old. Equal questions that are under way are sent
 * once, and an answer in use is renewed before it is too old, so that frequent readers do not wait.
 * That authentication is disabled stays true while the cluster does not answer, as long as the
 * mirror shows nothing that is newer than that answer.
 *
 * Tokens take turns in sending their questions, and each has a share of the memory, so that none
 * can keep the others from being answered. Reads and new watches of very long ranges are not
 * decided about here: the cluster does so with each. While such a watch runs, it is checked as all
 * are.
 */
#ifndef VIGIL_MIRROR_SHARED_CALLS_GRANTS_H
#define VIGIL_MIRROR_SHARED_CALLS_GRANTS_H

#include "base/container/list.h"
#include "base/slice.h"
#include "base/status.h"

struct mirror_state;
struct grants;
struct loop;
struct upstream;

enum {
    GRANTS_MAX = 128 << 10,      /* callers and ranges that are remembered … */
    GRANTS_BYTES_MAX = 64 << 20, /* … and their bytes; those not used longest are forgotten */
    /* The share of one token; callers without one share one. */
    GRANTS_SHARE_MAX = GRANTS_MAX / 4,
    GRANTS_SHARE_BYTES_MAX = GRANTS_BYTES_MAX / 4,
    GRANTS_RANGE_BYTES_MAX = 8 << 10, /* a longer range is remembered for running watches only */
    GRANTS_QUESTIONS_MAX = 256,       /* questions under way; others wait for an answer */
    GRANTS_CONFIRMED_S = 5,           /* how long the last answer counts for a running watch */
};

struct grants_options {
    struct loop *loop;
    struct upstream *upstream;
    struct mirror_state *state;
    int64_t fresh_ns; /* 0: a second */
    /* A permission that was used was taken back, or authentication is enabled and a second has
     * passed: running watches must be checked again with grants_known. */
    void (*changed)(void *ctx);
    void *ctx;
};

struct grants *grants_new(const struct grants_options *options); /* aborts without memory */
void grants_free(struct grants *grants); /* no waiter may be left; accepts NULL */

/* Embedded by its owner. Everything is borrowed until done or a cancel. */
struct grants_waiter {
    void (*done)(struct grants_waiter *waiter);
    struct slice token, key, range_end; /* as in a request: see auth_rights_check */
    enum status status;                 /* after done: ST_OK, or why not */
    struct slice text;                  /* after done: the cluster's own text, if it failed */
    enum grpc_code code;
    int64_t asked_ns;        /* private: when the question was sent that has decided */
    uint64_t asked_changes;  /* private: mirror_state.rights_changes at that time */
    struct list in_question; /* private */
    int level;               /* private: which question decides */
};

/* False: the range is so long that only the cluster itself can decide, with each call. */
bool grants_can_decide(const struct grants *grants, struct slice key, struct slice range_end);

/* done may be called from within. ST_REQUEST_TOO_MANY_REQUESTS if the questions of the token, or of
 * all, take all the memory that they may. */
void grants_ask(struct grants *grants, struct grants_waiter *waiter);
/* After done with ST_OK: the answer still counts. If not, a waiter that has something else to wait
 * for asks again before anything is shown. */
bool grants_is_current(const struct grants *grants, const struct grants_waiter *waiter);
/* No effect if it does not wait. */
void grants_cancel(struct grants_waiter *waiter);

/*
 * For a running watch: the last answer. For an old one the question is repeated, and if the answer
 * is a refusal, `changed` is called. ST_AGAIN: the cluster answers, but has not confirmed this
 * permission for GRANTS_CONFIRMED_S, or there is no room for it; a watch for which this does not
 * change must be ended. While the cluster does not answer, the last answer counts, however old;
 * there was one for every watch when it was created.
 */
MUST_CHECK
enum status grants_known(struct grants *grants, struct slice token, struct slice key,
                         struct slice range_end);
/* By the last answer: authentication is enabled in the cluster. */
bool grants_enabled(const struct grants *grants);

/* Asserts that it is consistent; for tests. */
void grants_check(const struct grants *grants);

#endif
