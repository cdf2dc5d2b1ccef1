/*
 * Authentication and permissions of the v2 API: while the users of v2 are enabled, a request
 * continues only when the guard permits it. It decides by the head of the request, before the body
 * is read, and confirms the decision when the body has arrived.
 *
 *     request ──► read users and roles ──► not enabled ─────────────────────► permitted
 *                        │
 *                        ├─ Authorization: Basic ──► verify the password ───► permitted, or 401
 *                        ├─ a user's name in the client's certificate ──────► permitted, or 401
 *                        └─ neither: the role guest, for keys only ─────────► permitted, or 401
 *
 * Credentials that cannot be parsed are refused. The password is verified again only if users or
 * roles were changed while the body arrived, or if the body asks for more than the head did.
 */
#ifndef VIGIL_ETCD_V2_GUARD_H
#define VIGIL_ETCD_V2_GUARD_H

struct v2_call;

enum v2_need {
    V2_NEED_NOTHING,
    V2_NEED_KEY,  /* permission for what the request does to the call's key */
    V2_NEED_ROOT, /* the role root */
};

/* For a route's authorize: admits the request if it is permitted by the users and roles of v2
 * (policy.h), and answers it otherwise. The call is the exchange's user, and its arena is
 * initialised; its form may be empty if the body is needed to read it. */
void v2_guard_admit(struct v2_call *call, enum v2_need need);
/* For the route's on_request: calls next if the request is still permitted, and answers it
 * otherwise. */
void v2_guard_confirm(struct v2_call *call, void (*next)(struct v2_call *call));

#endif
