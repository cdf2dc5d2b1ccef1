/*
 * A set of fields of an object: the fields that a manager owns (metadata.managedFields), or that
 * differ between two objects. It is a tree of sorted entries, each a step of a path; it mirrors
 * fieldpath.Set of structured-merge-diff, with its members and children in one list.
 *
 *     f:metadata ─► f:labels ─► f:app *            * is a member: the path that ends here
 *     f:spec ─► f:ports ─► k:{"port":80} * ─► f:name *
 *
 * A set is immutable, so sets share common parts. It is allocated in an arena, like the JSON that
 * its values point into. NULL is the empty set, and no other set is empty: each entry is a member
 * or leads to one. The depth is limited like that of a JSON tree, and the memory by the arena.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_FIELD_SET_H
#define VIGIL_KUBE_MERGE_APPLY_FIELD_SET_H

#include "codec/json/tree.h"

enum field_step {
    FIELD_NAME,  /* a member of an object */
    FIELD_KEY,   /* an item of a list that is a map, identified by its key members */
    FIELD_VALUE, /* an item of a list that is a set */
    FIELD_INDEX,
};

struct field_element {
    enum field_step step;
    struct slice name;             /* FIELD_NAME */
    const struct json_node *value; /* FIELD_KEY: scalars by name; FIELD_VALUE: a scalar */
    int64_t index;                 /* FIELD_INDEX */
};

/* A set has only FIELD_MEMBER; a comparison uses the other marks. */
enum field_mark {
    FIELD_MEMBER = 1 << 0,
    FIELD_ADDED = 1 << 1,
    FIELD_MODIFIED = 1 << 2,
    FIELD_REMOVED = 1 << 3,
};

struct field_set;

struct field_entry {
    struct field_element element;
    unsigned marks;
    const struct field_set *below;
};

struct field_set {
    struct field_entry *entries;
    size_t count;
};

/* Orders names before keys, keys before values, and values before indexes. */
int field_element_compare(const struct field_element *a, const struct field_element *b);
struct field_element field_name(struct slice name);
/* Orders scalars by value: numbers, then strings, bools, null. */
int field_value_compare(const struct json_node *a, const struct json_node *b);

/* NULL if the set has no such entry. */
const struct field_entry *field_set_find(const struct field_set *set,
                                         const struct field_element *element);
/* The number of members. */
size_t field_set_count(const struct field_set *set);
bool field_set_equal(const struct field_set *a, const struct field_set *b);

/* -- Construction; ST_NOMEM -- */

/* Collects the entries of one level in any order. Initialized with zeros except for the arena. */
struct field_builder {
    struct arena *arena;
    struct field_entry *entries;
    size_t count, capacity;
    bool unsorted;
};

/*
 * Entries that are neither members nor lead to one are ignored. Adding an element twice has no
 * further effect.
 */
MUST_CHECK
enum status field_builder_add(struct field_builder *builder, struct field_element element,
                              unsigned marks, const struct field_set *below);
MUST_CHECK
enum status field_builder_finish(struct field_builder *builder, const struct field_set **ret_set);

/* A set with one path of names: "metadata", "labels". */
MUST_CHECK
enum status field_set_of_path(struct arena *arena, const char *const *names, size_t count,
                              const struct field_set **ret_set);

enum field_operation {
    FIELD_UNION,
    FIELD_INTERSECTION,
    FIELD_DIFFERENCE,           /* a without the members of b */
    FIELD_RECURSIVE_DIFFERENCE, /* and without the paths below them */
};

/* Entries with any mark count as members; a union has the marks of both. */
MUST_CHECK
enum status field_set_combine(struct arena *arena, enum field_operation operation,
                              const struct field_set *a, const struct field_set *b,
                              const struct field_set **ret_set);
/* The entries that have one of these marks, as members. */
MUST_CHECK
enum status field_set_select(struct arena *arena, const struct field_set *set, unsigned marks,
                             const struct field_set **ret_set);

#endif
