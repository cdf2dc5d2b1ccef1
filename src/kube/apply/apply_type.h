/*
 * What a value may be, as server-side apply sees it: a leaf, a list or a map, each owned as a whole
 * or item by item. From the table of built-in types (kube/schema/schema.h) or from the schema of a
 * custom resource; mirrors the atoms of structured-merge-diff as kube-openapi makes them.
 * Read-only, for any thread.
 */
#ifndef VIGIL_KUBE_APPLY_APPLY_TYPE_H
#define VIGIL_KUBE_APPLY_APPLY_TYPE_H

#include "kube/custom/schema/structural.h"
#include "kube/schema/schema.h"

/* A small value; `of` is borrowed. */
struct apply_type {
    enum {
        APPLY_TYPE_NOTHING,  /* nothing may stand here: the field is not declared */
        APPLY_TYPE_DEDUCED,  /* anything: maps by member, lists as a whole */
        APPLY_TYPE_UNTYPED,  /* anything, as a whole */
        APPLY_TYPE_TEXT,     /* a string */
        APPLY_TYPE_MESSAGE,  /* of: struct kube_type */
        APPLY_TYPE_FIELD,    /* of: struct kube_field, with its shape */
        APPLY_TYPE_ITEM,     /* of: struct kube_field, one item of it */
        APPLY_TYPE_SCHEMA,   /* of: struct schema */
        APPLY_TYPE_RESOURCE, /* the same: a whole resource, with kind, apiVersion and metadata */
    } kind;
    bool preserve; /* of schemas: one above lets anything stand where nothing is declared */
    const void *of;
};

enum apply_type_form {
    APPLY_TYPE_MAP = 1 << 0,
    APPLY_TYPE_SCALAR = 1 << 1,
    APPLY_TYPE_LIST = 1 << 2
};
enum apply_type_scalar {
    APPLY_TYPE_ANY,
    APPLY_TYPE_STRING,
    APPLY_TYPE_NUMERIC,
    APPLY_TYPE_BOOLEAN
};

struct apply_rules {
    unsigned forms; /* enum apply_type_form; of more than one the value decides */
    enum apply_type_scalar scalar;
    bool list_atomic, map_atomic;
    bool list_keyed;        /* a list that is a map: items by keys; else by value */
    struct apply_type item; /* of a list */
    struct apply_type
        rest; /* of a map: members that are no fields; APPLY_TYPE_NOTHING: none may be */
};

struct apply_rules apply_rules_of(struct apply_type type);
/* The forms that this value can have here: one, or as many as there are if it is NULL or null. */
unsigned apply_rules_forms(const struct apply_rules *rules, const struct json_node *value);

/* A field by name, or what others are; *ret_named: it is one. */
struct apply_type apply_rules_member(struct apply_type type, const struct apply_rules *rules,
                                     struct slice name, bool *ret_named);

/* The keys of a list that is a map, one after the other: *at is counted. */
struct apply_type_key {
    struct slice name;
    struct slice preset;                 /* JSON; empty: see preset_node */
    const struct json_node *preset_node; /* NULL: none */
};
bool apply_type_key(struct apply_type type, size_t *at, struct apply_type_key *ret_key);

/* The object that Go makes of a type when nothing is said: what has no omitempty is there.
 * ST_NOMEM.
 */
MUST_CHECK
enum status apply_type_zero(struct arena *arena, const struct kube_type *type,
                            struct json_node **ret_object);
/* One member of it; NULL: it is left out. */
MUST_CHECK
enum status apply_type_zero_member(struct arena *arena, const struct kube_type *type,
                                   struct slice name, struct json_node **ret_value);

#endif
