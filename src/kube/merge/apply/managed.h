/*
 * The managers of an object and the fields that each owns: metadata.managedFields, parsed and
 * written. An entry is identified by manager, operation, subresource and, for updates, the version.
 * Entries are allocated in an arena, like their sets. Mirrors the managedfields package of
 * apimachinery.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_MANAGED_H
#define VIGIL_KUBE_MERGE_APPLY_MANAGED_H

#include "kube/merge/apply/field_set.h"

enum {
    MANAGED_ENTRIES_MAX = 1000, /* per object */
    MANAGED_UPDATES_MAX = 10,   /* as in Kubernetes: older ones are merged into one */
};

/* Identifies a manager. Texts have no escapes and are borrowed from the object or the request. */
struct field_manager {
    struct slice name, api_version, subresource;
    bool applied; /* operation Apply; else Update */
};

struct managed_entry {
    struct field_manager manager;
    struct slice id;   /* see managed_id */
    struct slice time; /* "2026-11-15T06:15:00Z"; empty: none */
    const struct field_set *set;
};

struct managed {
    struct arena *arena;
    struct managed_entry *entries; /* in any order */
    size_t count, capacity;
};

/* The fields that no manager owns, because they identify the object. */
extern const struct field_set managed_unowned;

/*
 * The identifier: the entry as JSON without fields, time and (for an apply) version. Conflicts are
 * sorted by it. ST_NOMEM.
 */
MUST_CHECK
enum status managed_id(struct arena *arena, const struct field_manager *manager,
                       struct slice *ret_id);

/* list: a JSON array, or NULL. ST_MALFORMED: not valid managedFields; ST_LIMIT; ST_NOMEM. */
MUST_CHECK
enum status managed_read(struct managed *managed, const struct json_node *list);
/* The entries in the order of Kubernetes. *ret_list NULL: there are none. ST_NOMEM. */
MUST_CHECK
enum status managed_write(const struct managed *managed, struct json_node **ret_list);

/* An entry with fields that are given as JSON instead of its set. ST_NOMEM. */
MUST_CHECK
enum status managed_write_entry(struct arena *arena, const struct managed_entry *entry,
                                struct json_node *fields, struct json_node **ret_node);

/* NULL if there is no such entry. */
struct managed_entry *managed_find(const struct managed *managed, struct slice id);
/*
 * Sets the fields of an entry; adds the entry if it is missing, and removes it if there are no
 * fields (*ret_entry is NULL then). *ret_entry is valid until the next change. ST_LIMIT: too many
 * entries; ST_NOMEM.
 */
MUST_CHECK
enum status managed_set(struct managed *managed, const struct field_manager *manager,
                        const struct field_set *set, struct managed_entry **ret_entry);
void managed_drop(struct managed *managed, struct managed_entry *entry);
/* Adds a copy of an entry with its id. ST_LIMIT: too many entries; ST_NOMEM. */
MUST_CHECK
enum status managed_add(struct managed *managed, const struct managed_entry *entry);

/* Merges the oldest updates of each version into one while there are too many. ST_NOMEM. */
MUST_CHECK
enum status managed_cap(struct managed *managed);

/* Whether the list is [] or [{}], by which clients remove all ownership. */
bool managed_is_reset(const struct json_node *list);

#endif
