/*
 * The texts of reviews, and what their answers mean. An answer that is not clearly a permission is
 * not a permission: its kind must be right, and `allowed` must be true and not a text that says so.
 */
#ifndef VIGIL_TIER_RIGHTS_REVIEW_H
#define VIGIL_TIER_RIGHTS_REVIEW_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "kube/policy/access/rbac/user.h"
#include "kube/types/status.h"

struct tier_access;
struct tier_user;

#define TIER_TOKEN_REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
#define TIER_ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

enum { TIER_REASON_BYTES_MAX = 1024 }; /* why something is refused; longer ones are cut */

enum tier_answer {
    TIER_ANSWER_YES,
    TIER_ANSWER_NO,
    TIER_ANSWER_NONE, /* the server could not decide, or what it says cannot be understood */
};

/* -- Tokens -- */

/* The token is UTF-8. ST_NOMEM. */
MUST_CHECK
enum status tier_review_write_token(struct slice token, struct buf *to);
/* YES: the user's texts are in the arena. NONE: *ret_reason says why; it is a constant. */
enum tier_answer tier_review_read_token(struct arena *arena, struct slice body,
                                        struct kube_user_info *ret_user, const char **ret_reason);

/* -- Accesses -- */

/* The member "resourceAttributes" of a spec, without commas around it. The arena is for work.
 * ST_NOMEM. */
MUST_CHECK
enum status tier_review_write_access(struct arena *arena, const struct tier_access *access,
                                     struct buf *to);
/* The whole review, with this member. ST_NOMEM. */
MUST_CHECK
enum status tier_review_write(const struct tier_user *user, struct slice attributes,
                              struct buf *to);
/* *ret_reason is in the arena or constant. Of a NO it is the server's, and often empty; of NONE it
 * says what is wrong. */
enum tier_answer tier_review_read_access(struct arena *arena, struct slice body,
                                         struct slice *ret_reason);

/* Fails with kube-apiserver's 403 for it; texts are in the arena, except for those of the access.
 */
void tier_review_forbid(struct arena *arena, struct kube_status *status,
                        const struct tier_user *user, const struct tier_access *access,
                        struct slice reason);

#endif
