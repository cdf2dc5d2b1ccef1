/*
 * Determines the user of a request: the owner of its certificate, of its bearer token, or
 * system:anonymous. Of a service account's token the account, and the pod, secret or node that it
 * is bound to, are read from the store: a token ends with them.
 *
 * Embedded by its caller until done. On the thread of the API.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_SIGN_IN_H
#define VIGIL_KUBE_POLICY_ACCESS_SIGN_IN_H

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "kube/policy/access/account_token.h"
#include "kube/policy/access/rbac/user.h"
#include "kube/request/tokens.h"

struct clock;
struct http_request;

/* An object that must exist with this uid. */
struct kube_sign_in_check {
    const char *prefix;
    struct slice namespace;
    const struct kube_account_ref *ref;
};
enum { KUBE_SIGN_IN_CHECKS_MAX = 4 };

struct kube_sign_in {
    /* Set by the caller; borrowed. */
    struct engine_shard *shard;
    struct clock *clock;
    size_t *under_way;
    const struct kube_tokens *tokens;
    const struct kube_account_keys *accounts;
    struct arena *arena; /* memory of the result; freed after done at the earliest */
    void (*done)(struct kube_sign_in *sign_in);

    /* For done. ST_INVALID_AUTH_TOKEN: the credentials are wrong; others: they could not be
     * verified. */
    enum status status;
    const char *why; /* reason of ST_INVALID_AUTH_TOKEN */
    struct kube_user_info user;
    bool by_account; /* a token of a service account: */
    struct kube_account_claims claims;

    /* Private. */
    struct kube_sign_in_check checks[KUBE_SIGN_IN_CHECKS_MAX];
    size_t check_count, checked;
    struct pb_range_request request;
    struct engine_range range;
};

/* Calls done, perhaps at once. */
void kube_sign_in_start(struct kube_sign_in *sign_in, const struct http_request *request);
/* The same for a token alone, meant for one of these audiences; NULL: for this server. */
void kube_sign_in_token(struct kube_sign_in *sign_in, struct slice token,
                        const struct kube_texts *audiences);

/* The user of a client certificate or of a token of the token file, in the arena. False: the
 * request has neither. */
MUST_CHECK
bool kube_user_of_certificate(struct arena *arena, const struct http_request *request,
                              struct kube_user_info *ret_user);
void kube_user_of_file(struct arena *arena, const struct kube_user *from,
                       struct kube_user_info *ret_user);
/* Appends system:authenticated unless it is there. */
void kube_user_add_group(struct arena *arena, struct kube_user_info *user, struct slice group);

#endif
