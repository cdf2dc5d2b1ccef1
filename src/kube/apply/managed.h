/*
 * Who owns which fields of an object: metadata.managedFields, taken apart and put together again.
 * An entry is known by its identifier: manager, operation, subresource, and the version of updates.
 * Lies in an arena with the sets. Mirrors managedfields of apimachinery.
 */
#ifndef VIGIL_KUBE_APPLY_MANAGED_H
#define VIGIL_KUBE_APPLY_MANAGED_H

#include "kube/apply/field_set.h"

enum {
    MANAGED_ENTRIES_MAX = 1000, /* of one object */
    MANAGED_UPDATES_MAX = 10,   /* as in Kubernetes: older ones become one */
};

/* Texts are without escapes; borrowed from the object or the request. */
struct managed_who {
    struct slice manager, api_version, subresource;
    bool applied; /* operation Apply; else Update */
};

struct managed_entry {
    struct managed_who who;
    struct slice id;   /* see managed_id */
    struct slice time; /* "2026-11-15T06:15:00Z"; empty: none */
    const struct field_set *set;
};

struct managed {
    struct arena *arena;
    struct managed_entry *entries; /* in any order */
    size_t count, capacity;
};

/* The entry as JSON without version (of an apply), fields and time: what conflicts are sorted by.
 * ST_NOMEM. */
MUST_CHECK
enum status managed_id(struct arena *arena, const struct managed_who *who, struct slice *ret_id);

/* list: an array of JSON, or NULL. ST_MALFORMED: it is none of managedFields; ST_LIMIT; ST_NOMEM.
 */
MUST_CHECK
enum status managed_read(struct managed *managed, const struct json_node *list);
/* Sorted as Kubernetes does. *ret_list NULL: there are none. ST_NOMEM. */
MUST_CHECK
enum status managed_write(const struct managed *managed, struct json_node **ret_list);

/* NULL: there is none. */
struct managed_entry *managed_find(const struct managed *managed, struct slice id);
/* Sets the fields of an entry, which is made if need be, or taken away if there are no fields.
 * *ret_entry NULL then; it holds until the next change. ST_LIMIT: there are too many; ST_NOMEM. */
MUST_CHECK
enum status managed_set(struct managed *managed, const struct managed_who *who,
                        const struct field_set *set, struct managed_entry **ret_entry);
void managed_drop(struct managed *managed, struct managed_entry *entry);

/* Makes one of the oldest updates, for each version, while there are too many. ST_NOMEM. */
MUST_CHECK
enum status managed_cap(struct managed *managed);

/* [] or [{}], by which clients say that nobody owns anything any more. */
bool managed_is_reset(const struct json_node *list);

#endif
