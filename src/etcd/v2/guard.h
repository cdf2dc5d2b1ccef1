/*
 * Authentication and permissions of the v2 API: while the users of v2 are enabled, a request
 * continues only when the guard permits it.
 *
 *     request ──► read users and roles ──► not enabled ─────────────────────► permitted
 *                        │
 *                        ├─ Authorization: Basic ──► verify the password ───► permitted, or 401
 *                        ├─ a user's name in the client's certificate ──────► permitted, or 401
 *                        └─ neither: the role guest, for keys only ─────────► permitted, or 401
 *
 * Credentials that cannot be parsed are refused.
 */
#ifndef VIGIL_ETCD_V2_GUARD_H
#define VIGIL_ETCD_V2_GUARD_H

struct v2_call;

enum v2_need {
    V2_NEED_NOTHING,
    V2_NEED_KEY,  /* permission for what the request does to the call's key */
    V2_NEED_ROOT, /* the role root */
};

/* Calls next if the request is permitted by the users and roles of v2 (policy.h), and answers it
 * otherwise. The call is the exchange's user, and its arena is initialised. */
void v2_guard(struct v2_call *call, enum v2_need need, void (*next)(struct v2_call *call));

#endif
