/*
 * The types of server-side apply: a value is a scalar, a list or a map, and a list or map is owned
 * as a whole or item by item. Types come from the table of built-in types
 * (kube/types/schema/schema.h) or from the schema of a custom resource; they mirror schema.Atom of
 * structured-merge-diff as kube-openapi creates it. Read-only, for any thread.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_APPLY_TYPE_H
#define VIGIL_KUBE_MERGE_APPLY_APPLY_TYPE_H

#include "kube/custom/schema/structural.h"
#include "kube/types/schema/schema.h"

/* A reference to a type, passed by value; `of` is borrowed. */
struct apply_type {
    enum {
        APPLY_TYPE_NOTHING,  /* no value is allowed: the field is not declared */
        APPLY_TYPE_DEDUCED,  /* any value: maps by member, lists as a whole */
        APPLY_TYPE_UNTYPED,  /* any value, owned as a whole */
        APPLY_TYPE_TEXT,     /* a string */
        APPLY_TYPE_MESSAGE,  /* of: struct kube_type */
        APPLY_TYPE_FIELD,    /* of: struct kube_field, the whole list, map or value */
        APPLY_TYPE_ITEM,     /* of: struct kube_field, one item of its list or map */
        APPLY_TYPE_SCHEMA,   /* of: struct schema */
        APPLY_TYPE_RESOURCE, /* of: struct schema, of a resource with kind and metadata */
    } kind;
    bool preserve; /* for schemas: an outer schema preserves unknown fields */
    const void *of;
};

enum apply_form { APPLY_FORM_MAP = 1 << 0, APPLY_FORM_SCALAR = 1 << 1, APPLY_FORM_LIST = 1 << 2 };
enum apply_scalar {
    APPLY_SCALAR_ANY,
    APPLY_SCALAR_STRING,
    APPLY_SCALAR_NUMERIC,
    APPLY_SCALAR_BOOLEAN
};

struct apply_rules {
    unsigned forms; /* bits of enum apply_form; if there are several, the value decides */
    enum apply_scalar scalar;
    bool list_atomic, map_atomic;
    bool list_keyed;        /* items are identified by keys (listType=map); otherwise by value */
    struct apply_type item; /* type of a list's items */
    struct apply_type rest; /* type of a map's other members; APPLY_TYPE_NOTHING: not allowed */
};

struct apply_rules apply_rules_of(struct apply_type type);
/* The forms that this value can have: one, or all of them for NULL and null. */
unsigned apply_rules_forms(const struct apply_rules *rules, const struct json_node *value);

/* The type of a member. *ret_named: it is a declared field. */
struct apply_type apply_rules_member(struct apply_type type, const struct apply_rules *rules,
                                     struct slice name, bool *ret_named);

/* Removes what an object loses when it is decoded into Go's types. */
void apply_drop_lost(struct apply_type type, struct json_node *value);

/* One key of a list that is a map. apply_type_key iterates: it increments *at. */
struct apply_type_key {
    struct slice name;
    struct slice preset;                 /* default value as JSON; empty: see preset_node */
    const struct json_node *preset_node; /* NULL: none */
};
bool apply_type_key(struct apply_type type, size_t *at, struct apply_type_key *ret_key);

#endif
