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
 * not delay another with one. Too many waiting questions of a user, or in all, are refused. Tokens
 * are kept only as SHA-256. No answer is never a permission.
 *
 * Running watches ask again: tier_standing.
 *
 * One for each I/O thread, on that thread.
 */
#ifndef VIGIL_TIER_RIGHTS_RIGHTS_H
#define VIGIL_TIER_RIGHTS_RIGHTS_H

#include "base/container/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "kube/types/status.h"
#include "tier/link/link.h"
#include "wire/http/exchange.h"

struct metric_page;
struct tier_rights;

enum {
    TIER_REVIEWS_MAX = 64,          /* under way at a time */
    TIER_QUESTIONS_MAX = 16 * 1024, /* waiting, of all users */
    TIER_USER_QUESTIONS_MAX = 1024, /* waiting, of one user */
    TIER_USERS_MAX = 16 * 1024,     /* known at a time; the least recently used one is forgotten */
    TIER_ANSWERS_MAX = 256 * 1024,
};

struct tier_rights_options {
    struct loop *loop;
    struct tier_link *link;
    int64_t ttl_ns;   /* of an answer */
    int64_t again_ns; /* a standing right is asked about so often; 0: a minute */
    uint64_t seed;
};

struct tier_rights *tier_rights_new(
    const struct tier_rights_options *options);    /* aborts without memory */
void tier_rights_free(struct tier_rights *rights); /* nothing may wait; accepts NULL */

/* -- Who -- */

/* A user, counted by reference. */
struct tier_user {
    struct slice name, uid;
    const struct slice *groups;
    size_t group_count;
    struct slice extra; /* JSON: {"key":["value"]}; empty: none */
    bool
        by_certificate; /* forwarded calls impersonate the user; otherwise the token is passed on */
    bool anonymous;
    /* private */
    uint32_t refs;
};
struct tier_user *tier_user_ref(struct tier_user *user);
void tier_user_unref(struct tier_user *user); /* accepts NULL */

struct tier_question {
    /* user: a reference that the owner gets; NULL: it is not known who it is, and *status says why
     * (401, or 503 if the kube-apiserver does not answer, 429 if too many wait). */
    void (*done)(struct tier_question *question, struct tier_user *user,
                 const struct kube_status *status);
    /* private */
    struct list in_answer;
    struct deferred soon;
};
/* Without a token and a certificate: system:anonymous. done may be called from within. */
void tier_identify(struct tier_rights *rights, struct tier_question *question,
                   const struct http_request *request);
void tier_question_cancel(struct tier_question *question); /* no effect if it is idle */

/* -- May they -- */

struct tier_access {
    const char *verb; /* "get", "list", "watch" */
    struct slice group, version, resource, subresource, namespace, name;
    struct slice label_selector, field_selector; /* as in the query; they become requirements */
};

enum tier_verdict {
    TIER_ALLOWED,
    TIER_DENIED,
    TIER_UNKNOWN, /* nobody has answered: no access for now */
};

struct tier_right_wait {
    /* Denied: *status is the 403 in kube-apiserver's words; unknown: a 503 or 429. */
    void (*done)(struct tier_right_wait *wait, enum tier_verdict verdict,
                 const struct kube_status *status);
    /* private */
    struct list in_answer;
    struct deferred soon;
};
/* done may be called from within. The user and the access are copied. */
void tier_may(struct tier_rights *rights, struct tier_right_wait *wait, struct tier_user *user,
              const struct tier_access *access);
void tier_right_wait_cancel(struct tier_right_wait *wait);

/*
 * A right that a running watch needs: asked again every minute and when roles change, and shared by
 * all watches of the same user and access. A user who came with a token is also asked about again:
 * an expired or revoked token ends the watch.
 */
struct tier_standing {
    /* Denied, or for `patience` nobody has answered: the watch ends. Called once, not from within
     * add. */
    void (*lost)(struct tier_standing *standing, enum tier_verdict verdict,
                 const struct kube_status *status);
    /* private */
    struct list in_right;
};
/* After tier_may has allowed it. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status tier_standing_add(struct tier_rights *rights, struct tier_standing *standing,
                              struct tier_user *user, const struct tier_access *access);
void tier_standing_remove(struct tier_standing *standing); /* no effect if it was not added */

/* A role or binding has changed: answers that are kept are not used any more, and standing rights
 * are asked about again, a limited number at a time. */
void tier_rights_changed(struct tier_rights *rights);

void tier_rights_write_metrics(const struct tier_rights *rights, struct metric_page *page);

#endif
