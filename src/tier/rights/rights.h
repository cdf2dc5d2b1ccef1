/*
 * Who sends a request, and what they may do: the kube-apiserver decides both. A bearer token is
 * checked by a TokenReview, a certificate by the tier's own authorities (--client-ca-file) as
 * kube-apiserver does (CN is the user, O are the groups), and every read of the mirror by a
 * SubjectAccessReview.
 *
 *     request ──► tier_identify ──► user ──► tier_may ──► allowed, denied, unknown
 *
 * Answers are used for a limited time (--upstream-rights-ttl, default 10 s), counted from when the
 * question was sent. Equal questions share one review. The number of reviews under way is limited;
 * those beyond it wait in line, and users take turns, so that one with a thousand questions does
 * not delay another with one. Clients whose tokens are not known take turns by their addresses. Too
 * many waiting questions of a user, or in all, are refused. While the kube-apiserver restarts or
 * throttles, questions wait for it, at most TIER_ANSWER_NS; if no connection to it can be made,
 * they fail at once. No answer is never a permission.
 *
 * Answers about tokens are found by SHA-256. A token itself is kept as long as its user is in use.
 *
 * Running watches ask again: tier_standing.
 *
 * One for each I/O thread, on that thread. Functions named done and lost may call everything here
 * except for tier_rights_free.
 */
#ifndef VIGIL_TIER_RIGHTS_RIGHTS_H
#define VIGIL_TIER_RIGHTS_RIGHTS_H

#include "base/container/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "kube/types/status.h"
#include "tier/link/link.h"
#include "tier/rights/access.h"
#include "tier/rights/limits.h"
#include "tier/rights/user.h"
#include "wire/http/exchange.h"

struct metric_page;
struct metric_set;
struct tier_rate;
struct tier_rights;

struct tier_rights_options {
    struct loop *loop;
    struct tier_link *link;
    int64_t ttl_ns;             /* how long an answer is used */
    int64_t again_ns;           /* time between reviews of a standing right; 0: a minute */
    struct tier_rate *rate;     /* --upstream-qps; borrowed; NULL: no limit */
    struct metric_set *metrics; /* shared with other threads; NULL: its own */
    uint64_t seed;
    /* The first right stands, or the last one has ended: tier_rights_changed is needed, or not any
     * more. May be NULL. */
    void (*stands)(void *ctx, bool any);
    void *ctx;
};

struct tier_rights *tier_rights_new(
    const struct tier_rights_options *options);    /* aborts without memory */
void tier_rights_free(struct tier_rights *rights); /* nothing may wait; accepts NULL */

/* -- Who -- */

struct tier_question {
    /* user: a reference that the owner gets; NULL: it is not known who it is, and *status says why
     * (401, or 503 if the kube-apiserver does not answer, 429 if too many wait, 500 if the tier's
     * account lacks a permission). */
    void (*done)(struct tier_question *question, struct tier_user *user,
                 const struct kube_status *status);
    /* private */
    struct tier_token *answer; /* that it waits for */
    struct list in_answer;     /* its links are NULL until first used */
    int64_t since_ns;
};
/*
 * done may be called from within. As in kube-apiserver, a certificate goes before a token, and a
 * field of another scheme is ignored. Without a token and a certificate: system:anonymous. Whether
 * the kube-apiserver accepts anonymous requests (--anonymous-auth) is not asked: only a request
 * that is passed on finds out.
 */
void tier_identify(struct tier_rights *rights, struct tier_question *question,
                   const struct http_request *request);
void tier_question_cancel(struct tier_question *question); /* no effect if it is idle */

/* -- May they -- */

struct tier_right_wait {
    /* Denied: *status is the 403 in kube-apiserver's words; unknown: a 503, 500 or 429; it is
     * borrowed. Allowed: it is zeroed. */
    void (*done)(struct tier_right_wait *wait, enum tier_verdict verdict,
                 const struct kube_status *status);
    /* private */
    struct tier_right *answer; /* that it waits for */
    struct list in_answer;     /* its links are NULL until first used */
    int64_t since_ns;
    uint64_t since_changes;
};
/* done may be called from within. The user and the access are copied. */
void tier_may(struct tier_rights *rights, struct tier_right_wait *wait, struct tier_user *user,
              const struct tier_access *access);
void tier_right_wait_cancel(struct tier_right_wait *wait);

/*
 * A right that a running watch needs: asked again every minute and when roles change, and shared by
 * all watches of the same user and access. The user's token is reviewed again, too: the watch ends
 * when it has expired or was revoked. A denial of a right counts when it is confirmed by a server
 * that is ready, or after half a minute. Without answers a right is kept for TIER_PATIENCE_NS.
 */
struct tier_standing {
    /* Denied, or there was no answer for too long: the watch ends. Called once, not from within
     * add. The status is that of tier_may or tier_identify. */
    void (*lost)(struct tier_standing *standing, enum tier_verdict verdict,
                 const struct kube_status *status);
    /* private */
    struct tier_right *right; /* NULL: it was not added */
    struct tier_token *token; /* NULL: its user has none */
    struct list in_right, in_token;
};
/* After tier_may has allowed it. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status tier_standing_add(struct tier_rights *rights, struct tier_standing *standing,
                              struct tier_user *user, const struct tier_access *access);
void tier_standing_remove(struct tier_standing *standing); /* no effect if it was not added */

/* A role or binding has changed: answers that are kept are not used any more, and standing rights
 * are reviewed again, a limited number at a time. */
void tier_rights_changed(struct tier_rights *rights);
/* The same if the role or binding belongs to a namespace, and concerns only rights there. */
void tier_rights_changed_in(struct tier_rights *rights, struct slice namespace);

/* Counters that threads share, and that outlive them. Aborts without memory. */
struct metric_set *tier_rights_metrics_new(void);
void tier_rights_metrics_write(const struct metric_set *metrics, struct metric_page *page);
/* The same for those that these rights share. */
void tier_rights_write_metrics(const struct tier_rights *rights, struct metric_page *page);

/* Asserts every invariant; for tests. */
void tier_rights_check(const struct tier_rights *rights);

#endif
