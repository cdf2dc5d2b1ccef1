/*
 * Changes of users and roles of v2 as requests ask for them: what the body of a PUT says, and what
 * it makes of a policy, with etcd's words for what it refuses. Pure functions.
 */
#ifndef VIGIL_ETCD_V2_POLICY_CHANGE_H
#define VIGIL_ETCD_V2_POLICY_CHANGE_H

#include "etcd/v2/policy.h"

/* What is answered instead: a status of HTTP and a text. code 0: nothing is wrong. */
struct v2_refusal {
    unsigned code;
    char text[512];
};

struct v2_user_change {
    struct v2_user user;   /* hash: set by the caller when there is a password */
    struct slice password; /* empty: none */
    struct v2_names grant, revoke;
};

struct v2_role_change {
    struct v2_role role;
    struct v2_rights grant, revoke;
};

/* The body of a PUT about that name. False: refused. Borrows the body; the password is copied. */
MUST_CHECK
bool v2_user_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_user_change *ret_change, struct v2_refusal *refusal);
MUST_CHECK
bool v2_role_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_role_change *ret_change, struct v2_refusal *refusal);

/* Each changes the policy, or refuses and leaves it as it was. created: answered with 201. */
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
/* Only with a user root; the role guest is made if there is none. */
MUST_CHECK
bool v2_policy_enable(struct arena *arena, struct v2_policy *policy, struct v2_refusal *refusal);
MUST_CHECK
bool v2_policy_disable(struct v2_policy *policy, struct v2_refusal *refusal);

/* Always false, so that a caller can return it at once. */
bool v2_refuse(struct v2_refusal *refusal, unsigned code, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
