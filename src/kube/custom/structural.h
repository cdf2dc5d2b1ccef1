/*
 * The schema of a custom resource, taken apart once: what CustomResourceDefinitions say in
 * openAPIV3Schema. Read-only after it was made; lies in an arena with the JSON it was made from.
 *
 *     body ─► schema_prune ─► schema_default ─► schema_validate ─► stored
 *     stored ─► schema_prune ─► schema_default ─► seen, where the definition is newer than the
 * object
 *
 * Rules in CEL (x-kubernetes-validations) are known to be there, and are not run.
 * Bounds: as deep as a JSON tree is (JSON_TREE_DEPTH_MAX); memory at the arena's limit; a
 * validation takes SCHEMA_STEPS_MAX steps at most, whatever schema and object are.
 */
#ifndef VIGIL_KUBE_CUSTOM_STRUCTURAL_H
#define VIGIL_KUBE_CUSTOM_STRUCTURAL_H

#include "codec/json/tree.h"
#include "kube/api/faults.h"

enum { SCHEMA_STEPS_MAX = 4 << 20 };

enum schema_type {
    SCHEMA_STRING = 1 << 0,
    SCHEMA_NUMBER = 1 << 1,
    SCHEMA_INTEGER = 1 << 2,
    SCHEMA_BOOLEAN = 1 << 3,
    SCHEMA_ARRAY = 1 << 4,
    SCHEMA_OBJECT = 1 << 5,
};

enum schema_list_type { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

struct regex;
struct schema;
struct schema_format;

struct schema_property {
    struct slice name;
    struct schema *schema;
};

struct schema_list {
    struct schema **schemas;
    size_t count;
};

struct schema_names {
    struct slice *names;
    size_t count;
};

/* Bounds that are not there are -1; those of numbers have a flag. */
struct schema {
    unsigned types; /* enum schema_type; 0: any */
    bool int_or_string;
    bool nullable;
    bool preserve_unknown;
    bool embedded; /* a resource of its own, with kind, apiVersion and metadata */
    bool has_rules;
    bool exclusive_minimum, exclusive_maximum;
    bool has_minimum, has_maximum, has_multiple;
    bool additional_given, additional_allowed;
    double minimum, maximum, multiple_of;
    int64_t min_length, max_length, min_items, max_items, min_properties, max_properties;
    struct schema_property *properties; /* by name */
    size_t property_count;
    struct schema *items, *additional; /* NULL: none */
    struct schema_names required, list_keys;
    enum schema_list_type list_type;
    struct json_node *values;           /* enum: an array */
    struct json_node *preset;           /* default; NULL: none */
    struct slice pattern;               /* as written */
    const struct regex *regex;          /* NULL: none, or one that is not known here */
    struct slice format;                /* empty: none, or one that means nothing */
    const struct regex *shape;          /* of the format */
    const struct schema_format *checks; /* of the format, beyond its shape; may be NULL */
    struct schema_list all_of, any_of, one_of;
    struct schema * not ;
};

/* What compiling found besides. */
struct schema_traits {
    bool has_defaults;
    bool has_rules;          /* in CEL, anywhere */
    bool has_odd_patterns;   /* that are not known here, and so match everything */
    struct slice odd_format; /* one that means nothing; empty: none */
};

/* ST_INVALID: with an error for people; ST_LIMIT, ST_NOMEM. The node lives as long as the schema;
 * a node that is no object is an empty schema. */
MUST_CHECK
enum status schema_compile(struct arena *arena, struct json_node *node, struct schema **ret_schema,
                           struct schema_traits *traits, struct error *error);

/* NULL: there is none. */
struct schema *schema_property(const struct schema *schema, struct slice name);

/*
 * Takes out what the schema has not, and nulls where none may be, and tells the former: unknown
 * field "spec.a", sorted; `unknown` may hold some already, or be NULL. root: of a whole resource,
 * whose kind, apiVersion and metadata stay. ST_NOMEM.
 */
MUST_CHECK
enum status schema_prune(const struct schema *schema, struct json_node *value, bool root,
                         struct buf *unknown);
enum { SCHEMA_UNKNOWN_MAX = 64 }; /* of those told */

/* Puts in what is missing and has a default. ST_NOMEM. */
MUST_CHECK
enum status schema_default(struct arena *arena, const struct schema *schema,
                           struct json_node *value);

/*
 * Whether the value is as the schema wants it; what is not is told, at places below `path`. What is
 * as it was in `old` is not looked at; NULL: there was nothing. `arena` holds what is needed
 * meanwhile.
 */
void schema_validate(const struct schema *schema, struct json_node *value, struct json_node *old,
                     struct slice path, struct arena *arena, struct kube_faults *faults);
/* Lists that are sets and maps have no item twice, and embedded resources say what they are. */
void schema_validate_lists(const struct schema *schema, struct json_node *value,
                           struct arena *arena, struct kube_faults *faults);

#endif
