/*
 * What a value may be, as server-side apply sees it: a leaf, a list or a map, each owned as a whole
 * or item by item. From the table of built-in types (kube/schema/schema.h) or from the schema of a
 * custom resource; mirrors the atoms of structured-merge-diff as kube-openapi makes them.
 * Read-only, for any thread.
 */
#ifndef VIGIL_KUBE_APPLY_ATOM_H
#define VIGIL_KUBE_APPLY_ATOM_H

#include "kube/custom/schema/structural.h"
#include "kube/schema/schema.h"

/* A small value; `of` is borrowed. */
struct atom_type {
    enum {
        ATOM_NOTHING,  /* nothing may stand here: the field is not declared */
        ATOM_DEDUCED,  /* anything: maps by member, lists as a whole */
        ATOM_UNTYPED,  /* anything, as a whole */
        ATOM_TEXT,     /* a string */
        ATOM_MESSAGE,  /* of: struct kube_type */
        ATOM_FIELD,    /* of: struct kube_field, with its shape */
        ATOM_ITEM,     /* of: struct kube_field, one item of it */
        ATOM_SCHEMA,   /* of: struct schema */
        ATOM_RESOURCE, /* the same: a whole resource, with kind, apiVersion and metadata */
    } kind;
    bool preserve; /* of schemas: one above lets anything stand where nothing is declared */
    const void *of;
};

enum atom_form { ATOM_MAP = 1 << 0, ATOM_SCALAR = 1 << 1, ATOM_LIST = 1 << 2 };
enum atom_scalar { ATOM_ANY, ATOM_STRING, ATOM_NUMERIC, ATOM_BOOLEAN };

struct atom {
    unsigned forms; /* enum atom_form; of more than one the value decides */
    enum atom_scalar scalar;
    bool list_atomic, map_atomic;
    bool list_keyed;       /* a list that is a map: items by keys; else by value */
    struct atom_type item; /* of a list */
    struct atom_type rest; /* of a map: members that are no fields; ATOM_NOTHING: none may be */
};

struct atom atom_of(struct atom_type type);
/* The forms that this value can have here: one, or as many as there are if it is NULL or null. */
unsigned atom_forms(const struct atom *atom, const struct json_node *value);

/* A field by name, or what others are; *ret_named: it is one. */
struct atom_type atom_member(struct atom_type type, const struct atom *atom, struct slice name,
                             bool *ret_named);

/* The keys of a list that is a map, one after the other: *at is counted. */
struct atom_key {
    struct slice name;
    struct slice preset;                 /* JSON; empty: see preset_node */
    const struct json_node *preset_node; /* NULL: none */
};
bool atom_key(struct atom_type type, size_t *at, struct atom_key *ret_key);

/* The object that Go makes of a type when nothing is said: what has no omitempty is there.
 * ST_NOMEM.
 */
MUST_CHECK
enum status atom_zero(struct arena *arena, const struct kube_type *type,
                      struct json_node **ret_object);
/* One member of it; NULL: it is left out. */
MUST_CHECK
enum status atom_zero_member(struct arena *arena, const struct kube_type *type, struct slice name,
                             struct json_node **ret_value);

#endif
