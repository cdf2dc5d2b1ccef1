/*
 * Server-side apply and what other writes do to ownership, on trees: merge.Updater of
 * structured-merge-diff with what apimachinery's managedfields puts around it.
 *
 *     apply:    live ∪ config ─► without what the manager owned and no longer says, unless others
 *               own it ─► others' fields among what changed are conflicts, or taken by force
 *     update:   what changed is the writer's, and no longer others'
 */
#ifndef VIGIL_KUBE_APPLY_APPLY_H
#define VIGIL_KUBE_APPLY_APPLY_H

#include "kube/apply/managed.h"
#include "kube/apply/typed.h"

struct apply_request {
    struct typed typed;
    struct apply_type type;
    struct managed_who who;
    struct slice now;              /* as entries have it */
    const struct field_set *reset; /* what this path cannot change, and so nobody owns by it */
    bool force;
    /* Whether a version of managers is one of this kind; entries of others go. */
    bool (*version_known)(const struct apply_request *apply, struct slice api_version);
    const void *ctx;
};

/* Fields of another manager that an apply would change. */
struct apply_conflict {
    struct managed_who who;
    struct slice id;
    const struct field_set *set;
};

struct apply_conflicts {
    struct apply_conflict *list; /* by id */
    size_t count;
    size_t fields; /* in all */
};

/*
 * Neither tree has managedFields. *ret_object is what shall be there, or NULL: nothing changes but
 * who owns it. ST_EXISTS: conflicts, and nothing is changed but *managed; ST_INVALID: why;
 * ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status apply_config(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *config, struct managed *managed,
                         struct json_node **ret_object, struct apply_conflicts *ret_conflicts);

/* live NULL: it is new. */
MUST_CHECK
enum status apply_update(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *object, struct managed *managed);

#endif
