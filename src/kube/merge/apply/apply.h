/*
 * Server-side apply, and the effect of other writes on ownership, on trees. Mirrors merge.Updater
 * of structured-merge-diff with the managedfields package of apimachinery around it.
 *
 *     apply:    merge live and config ─► remove fields that the manager owned and no longer applies,
 *               unless others own them ─► changed fields of others are conflicts, or taken by force
 *     update:   changed fields belong to the writer, and no longer to others
 *
 * A manager's fields are those of the version in which it has written. If versions differ in more
 * than their name, objects are compared and pruned in each of these versions (in_version).
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_APPLY_H
#define VIGIL_KUBE_MERGE_APPLY_APPLY_H

#include "kube/merge/apply/managed.h"
#include "kube/merge/apply/typed.h"

struct apply_request {
    struct typed typed;
    struct apply_type type;
    struct field_manager manager;
    struct slice now;              /* in the form of managedFields entries */
    const struct field_set *reset; /* fields that this path cannot change, and so does not own */
    bool force;
    /* Whether the kind has this version; entries of other versions are removed. */
    bool (*version_known)(const struct apply_request *apply, struct slice api_version);
    /*
     * An object in another version, with the type of that version. NULL: objects
     * are the same in all versions. Statuses of apply_config, and others that are passed on, such
     * as ST_AGAIN: it is not known yet.
     */
    enum status (*in_version)(const struct apply_request *apply, const struct json_node *object,
                              struct slice to, struct apply_type *ret_type,
                              struct json_node **ret_object);
    const void *ctx;
};

/* Fields of another manager that an apply would change. */
struct apply_conflict {
    struct field_manager manager;
    struct slice id;
    const struct field_set *set;
};

struct apply_conflicts {
    struct apply_conflict *list; /* sorted by id */
    size_t count;
    size_t fields; /* number of fields in all conflicts */
};

/*
 * Neither tree has managedFields. *ret_object is the new object, or NULL if only the ownership
 * changes. ST_EXISTS: there are conflicts, and only *managed has changed; ST_INVALID, with
 * typed.why set; ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status apply_config(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *config, struct managed *managed,
                         struct json_node **ret_object, struct apply_conflicts *ret_conflicts);

/* live: NULL for a new object. */
MUST_CHECK
enum status apply_update(const struct apply_request *apply, const struct json_node *live,
                         const struct json_node *object, struct managed *managed);

#endif
