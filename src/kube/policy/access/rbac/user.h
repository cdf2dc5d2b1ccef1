/*
 * The user of a request, as Kubernetes' authenticators describe it: a name, a uid, groups, and
 * further attributes. Everything is borrowed from the arena of the request.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_USER_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_USER_H

#include "codec/json/tree.h"

#define KUBE_GROUP_AUTHENTICATED SLICE_LITERAL("system:authenticated")
#define KUBE_GROUP_UNAUTHENTICATED SLICE_LITERAL("system:unauthenticated")
#define KUBE_GROUP_MASTERS SLICE_LITERAL("system:masters") /* may do everything */
#define KUBE_USER_ANONYMOUS SLICE_LITERAL("system:anonymous")
#define KUBE_EXTRA_CREDENTIAL SLICE_LITERAL("authentication.kubernetes.io/credential-id")

/* The limits for one user, however it is described; a request that names more is refused. */
enum { KUBE_USER_GROUPS_MAX = 1024, KUBE_USER_EXTRAS_MAX = 64, KUBE_USER_BYTES_MAX = 64 << 10 };

struct kube_texts {
    const struct slice *items;
    size_t count;
};

struct kube_user_extra {
    struct slice key;
    struct kube_texts values;
};

struct kube_user_info {
    struct slice name, uid;
    struct kube_texts groups;
    const struct kube_user_extra *extra;
    size_t extra_count;
};

bool kube_texts_have(const struct kube_texts *texts, struct slice text);

/* A list that grows in the arena. A failed allocation is remembered by the arena. */
struct kube_text_list {
    struct arena *arena;
    struct slice *items;
    size_t count, capacity;
};
void kube_text_add(struct kube_text_list *list, struct slice text);
/* A copy of a member's text; empty if it is not a text, or without memory. */
struct slice kube_text_copy(struct arena *arena, const struct json_node *from, const char *name);
/* The strings of an array; other items are left out. Not more than max; false: there are more. */
bool kube_texts_read(struct arena *arena, const struct json_node *array, size_t max,
                     struct kube_texts *ret_texts);
static inline struct kube_texts kube_text_taken(const struct kube_text_list *list)
{
    return (struct kube_texts){list->items, list->count};
}

/* The user of a service account, without uid and extra: its name and its groups. */
void kube_user_account(struct arena *arena, struct slice namespace, struct slice name,
                       struct kube_user_info *ret_user);
/* "system:serviceaccount:NAMESPACE:NAME" with valid names. */
MUST_CHECK
bool kube_user_split_account(struct slice user, struct slice *ret_namespace,
                             struct slice *ret_name);

/* As Go prints it: `&{jane 1 [a b] map[key:[value]]}`, with the keys in order. */
MUST_CHECK
enum status kube_user_write(const struct kube_user_info *user, struct buf *to);

/* {"username":…,"uid":…,"groups":[…],"extra":{…}}; NULL: no memory. */
struct json_node *kube_user_json(struct arena *arena, const struct kube_user_info *user);

#endif
