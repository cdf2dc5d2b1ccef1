/*
 * Changes of the users and roles of v2: parses the body of a PUT and applies it to a policy.
 * Refusals have etcd's texts. Pure functions.
 */
#ifndef VIGIL_ETCD_V2_POLICY_CHANGE_H
#define VIGIL_ETCD_V2_POLICY_CHANGE_H

#include "etcd/v2/policy.h"

/* An error answer: an HTTP status and a text. code 0: no error. */
struct v2_refusal {
    unsigned code;
    char text[512];
};

struct v2_user_change {
    struct v2_user user;   /* its hash is set by the caller if there is a password */
    struct slice password; /* empty: none */
    struct v2_names grant, revoke;
};

struct v2_role_change {
    struct v2_role role;
    struct v2_rights grant, revoke;
};

/* Parse the body of a PUT for this name. False: refused. The body is borrowed, except for the
 * password, which is copied. */
MUST_CHECK
bool v2_user_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_user_change *ret_change, struct v2_refusal *refusal);
MUST_CHECK
bool v2_role_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_role_change *ret_change, struct v2_refusal *refusal);

/* Each changes the policy, or refuses and leaves it unchanged. created: the answer is 201. */
MUST_CHECK
bool v2_user_put(struct arena *arena, struct v2_policy *policy, const struct v2_user_change *change,
                 struct v2_user *ret_user, bool *ret_created, struct v2_refusal *refusal);
MUST_CHECK
bool v2_user_delete(struct v2_policy *policy, struct slice name, struct v2_refusal *refusal);
MUST_CHECK
bool v2_role_put(struct arena *arena, struct v2_policy *policy, const struct v2_role_change *change,
                 struct v2_role *ret_role, bool *ret_created, struct v2_refusal *refusal);
MUST_CHECK
bool v2_role_delete(struct v2_policy *policy, struct slice name, struct v2_refusal *refusal);
/* Needs a user root. Creates the role guest if it does not exist. */
MUST_CHECK
bool v2_policy_enable(struct arena *arena, struct v2_policy *policy, struct v2_refusal *refusal);
MUST_CHECK
bool v2_policy_disable(struct v2_policy *policy, struct v2_refusal *refusal);

/* Always returns false, so that a caller can return its result. */
bool v2_refuse(struct v2_refusal *refusal, unsigned code, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
