/* What is gathered for a write by kube/handlers/write/policy_gather.c and policy_params.c, and used
 * by policies.c. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_POLICIES_PRIVATE_H
#define VIGIL_KUBE_HANDLERS_WRITE_POLICIES_PRIVATE_H

#include "kube/handlers/write/policies.h"
#include "kube/policy/access/rbac/rbac_fetch.h"
#include "kube/policy/policies/finder.h"
#include "kube/policy/policies/mutate.h"
#include "kube/policy/policies/validate.h"

/* A question needs one fetch, and more if roles change meanwhile. */
enum { KUBE_POLICY_FETCHES = 4 };

enum { KUBE_POLICY_FACTS_BYTES_MAX = 64 << 20 };

/* A parameter that was read by its name. Policies often share one. */
struct kube_policy_param {
    struct kube_policy_param *next;
    const struct kube_kind *kind;
    struct slice namespace, name;
    const struct json_node *tree; /* NULL: there is none, */
    struct slice error;           /* or it could not be converted */
};

struct kube_hooks; /* kube/handlers/write/webhooks.c */

/* What is gathered for one attempt; in the arena of the call. */
struct kube_policy_facts {
    struct kube_change *change;
    struct arena arena;
    struct kube_match_request request;
    struct kube_kinds *kinds; /* a reference: contains the equivalents, if they are custom */
    /* Those that validate, and behind them those that mutate. */
    struct kube_policy_case *cases;
    size_t count, capacity, validating;
    struct kube_hooks *hooks; /* webhooks; NULL: there have never been any */
    bool too_many;
    struct kube_policies_wait wait;
    struct kube_policies_read { /* what is not held */
        struct kube_policy_facts *facts;
        struct kube_lookup_read read;
        bool done;
    } reads[KUBE_POLICY_PARTS];
    bool found; /* the cases are known */

    /* The namespace. */
    bool has_namespace;
    const struct json_node *namespace_object;
    /* Parameters: of the case `at`. */
    size_t at;
    bool param_begun, kinds_read, page_open;
    struct kube_registry_wait registry;
    const struct kube_kind *param_kind;
    struct kube_policy_param *read; /* the newest one first */
    enum status read_status;
    struct slice prefix, end, from; /* keys that a selector examines */
    size_t from_room;
    size_t examined, examined_bytes;
    bool page_follows;
    size_t converted; /* items of the batch that were examined */
    struct pb_range_request range;
    struct deferred more;

    /* Objects in other versions (kube/handlers/write/policy_convert.c). */
    struct kube_policy_sights sights;
    struct slice object_json, old_json; /* what is to be converted; empty: there is none */
    struct slice back, taken; /* a mutated object in another version, and converted back */
    struct kube_conversion_batch *batch; /* parameters (policy_params.c), unless it is under way */

    struct kube_permissions permissions;
    uint64_t spent;     /* cost of the evaluations that have asked something, and begin again */
    bool roles_current; /* roles and bindings are as new as the store was when the write began */
    struct kube_rbac_wait roles;
    struct kube_rbac_fetch *fetches[KUBE_POLICY_FETCHES]; /* for the question being answered */
    size_t fetch_count;

    struct kube_policy_check *checks; /* to be counted */
    size_t audited;                   /* likewise */
    bool checked;                     /* by an attempt before, which may have added warnings: */
    size_t warned;                    /* length of call->warnings before them */
};

/* -- Gathering -- */

/* The parameters of the case f->at, or a part of them. */
enum kube_stepped kube_policies_gather_params(struct kube_policy_facts *facts);
/* Gathering continues where it has waited, or the error is answered. */
void kube_policies_resume(struct kube_policy_facts *facts, enum status status);
/* Reads an object; done ends with kube_policies_resume. */
enum kube_stepped kube_policies_read_key(struct kube_policy_facts *facts, const char *prefix,
                                         struct slice namespace, struct slice name,
                                         void (*done)(struct engine_op *op));
/* The tree of an object, as it is stored or as a webhook has converted it, as its kind serves it,
 * with its version. NULL: it is not an object, or
 * there is no memory, which the arena remembers. */
struct json_node *kube_policies_read_tree(struct kube_policy_facts *facts,
                                          const struct kube_kind *kind, struct kube_kv kv,
                                          int64_t version);

/* On the thread of the API. */
void kube_policies_free_fetches(struct kube_policy_facts *facts);

/* Converts what an evaluation needs in another version, or what was mutated in one: a part of
 * kube_policies_ask. */
kube_step_fn kube_policies_convert;
/* The objects have changed, or are not needed any more. */
static inline void kube_policies_forget_sights(struct kube_policy_facts *facts)
{
    facts->sights = (struct kube_policy_sights){0};
}

/* What all policies and webhooks see. Without memory it fails. */
MUST_CHECK
bool kube_policies_begin_write(struct kube_change *change, const struct kube_policy_case *cases,
                               size_t count, struct kube_policy_write *write);
/* The objects in validating admission, as the client sees them. */
MUST_CHECK
bool kube_policies_see(struct kube_change *change, struct kube_policy_write *write);
/* What is mutated, and what it was before. */
MUST_CHECK
bool kube_policies_see_mutable(struct kube_change *change, struct kube_policy_write *write);
/* The mutated object becomes change->object, or change->posted. */
MUST_CHECK
bool kube_policies_take(struct kube_change *change, const struct json_node *mutated);
/* Back to the step that answers questions about permissions, which is the one before. */
enum kube_stepped kube_policies_go_to_ask(struct kube_change *change,
                                          const struct kube_policy_write *write);

/* Counts what policies have decided about the write. */
void kube_policies_count(const struct kube_policy_facts *facts);

/* The write as rules see it, with the name that is known by now. */
struct kube_match_request kube_policies_request(const struct kube_change *change);

/* False: it is neither a policy, nor a binding, nor a configuration of webhooks. */
bool kube_policy_part_of(const struct kube_kind *kind, enum kube_policy_part *ret_part);

#endif
