/*
 * The trees of a write that the expressions of a policy look at, besides its parameters: only those
 * that the policy uses are made. In the arena of the write.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_INPUTS_H
#define VIGIL_KUBE_POLICY_POLICIES_INPUTS_H

#include "kube/policy/policies/policy_write.h"

struct kube_policy_inputs {
    const struct json_node *object, *old, *request, *namespace_object; /* NULL: null */
};

/* What policies see that match by the same kind and use the same, is made once. Zeroed: empty. */
struct kube_policy_inputs_made {
    const struct kube_kind *kind;
    unsigned uses;
    struct kube_policy_inputs inputs;
};
enum { KUBE_POLICY_INPUTS_MADE = 4 };
struct kube_policy_inputs_cache {
    struct kube_policy_inputs_made made[KUBE_POLICY_INPUTS_MADE];
    unsigned next;
};

/* kind: that of the rule that has matched, as which the policy sees the objects. NULL: no memory,
 * or the objects cannot be converted. Valid until the next call. */
MUST_CHECK
const struct kube_policy_inputs *kube_policy_inputs_make(const struct kube_policy_write *write,
                                                         const struct kube_policy *policy,
                                                         const struct kube_kind *kind,
                                                         struct kube_policy_inputs_cache *cache);
/* The object as the policy sees it, if it has changed since. False: as above. */
MUST_CHECK
bool kube_policy_inputs_see(const struct kube_policy_write *write, const struct kube_policy *policy,
                            const struct kube_kind *kind, const struct json_node *object,
                            const struct json_node **ret_object);

/* The same for one that is in the version of the policy already. */
MUST_CHECK
bool kube_policy_inputs_show(const struct kube_policy_write *write,
                             const struct kube_policy *policy, const struct json_node *object,
                             const struct json_node **ret_object);

/* Whether the objects can be shown as those of this kind. False: a webhook has to convert them
 * first, and write->sights->wanted says so. */
MUST_CHECK
bool kube_policy_can_show(const struct kube_policy_write *write, const struct kube_kind *kind);
/* Why they cannot, according to the webhook; empty: they can. */
struct slice kube_policy_show_error(const struct kube_policy_write *write,
                                    const struct kube_kind *kind);
/* Whether an evaluation has to wait for an answer or a conversion, and begins again. */
static inline bool kube_policy_waits(const struct kube_policy_write *write)
{
    return write->permissions->unknown ||
           (write->sights && kube_policy_sights_wanted(write->sights));
}

/* Whether the policy sees another version of what is written. What has a kind of its own, such as a
 * Scale, is the same for all versions of its resource. */
bool kube_policy_converts(const struct kube_policy_write *write, const struct kube_kind *kind);
/* Whether a webhook does that. */
bool kube_policy_converts_by_webhook(const struct kube_policy_write *write,
                                     const struct kube_kind *kind);
/* The mutated object in another version, as a webhook has converted it, in the arena. NULL:
 * *ret_error says why not; or it is not converted yet, and write->sights->leaving says so; or there
 * is no memory. */
MUST_CHECK
struct json_node *kube_policy_move(const struct kube_policy_write *write, struct arena *arena,
                                   const struct kube_kind *to, const struct json_node *object,
                                   struct slice *ret_error);
/* Changes an object of one version of a kind into another one. False: no memory, or it cannot be
 * converted. */
MUST_CHECK
bool kube_policy_convert(struct arena *arena, const struct kube_kind *from,
                         const struct kube_kind *to, struct json_node *object);

/* "CREATE", … */
const char *kube_policy_operation(unsigned operation);

/* The namespace whose labels selectors see: the object itself if a namespace is written. NULL: it
 * does not exist. */
const struct json_node *kube_policy_namespace_of(const struct kube_policy_write *write);

#endif
