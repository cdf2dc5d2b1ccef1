/*
 * Who sends requests, as the kube-apiserver describes users: a name, a uid, groups, and further
 * attributes. Made once for a token that was reviewed, or for the request of a client with a
 * certificate, and read-only. Counted by reference; one thread.
 */
#ifndef VIGIL_TIER_RIGHTS_USER_H
#define VIGIL_TIER_RIGHTS_USER_H

#include "base/slice.h"

#include <stdbool.h>

struct kube_user_info;

enum { TIER_TOKEN_ID_BYTES = 32 }; /* SHA-256 */

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
    size_t bytes;       /* its memory */
    struct slice spec;  /* the members of a SubjectAccessReview's spec that describe it */
    struct slice token; /* that was reviewed; erased with the user; empty: none */
    uint8_t token_id[TIER_TOKEN_ID_BYTES];
};
struct tier_user *tier_user_ref(struct tier_user *user);
void tier_user_unref(struct tier_user *user); /* accepts NULL */

/* private: for the sources of this directory. A copy of everything, with one reference; NULL: no
 * memory. The caller sets the other fields. */
struct tier_user *tier_user_new(const struct kube_user_info *info, struct slice token);

#endif
