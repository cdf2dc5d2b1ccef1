/*
 * The compiled schema of a custom resource: openAPIV3Schema of a CustomResourceDefinition. It is
 * read-only and used by any thread; it is allocated in an arena and does not refer to the JSON it
 * was made from. Equal parts are shared, and so are patterns of the same text, so that its size is
 * about that of the text.
 *
 *     body ─► schema_prune ─► schema_default ─► schema_validate ─► stored
 *     stored ─► schema_prune ─► schema_default ─► sent, if the definition is newer than the object
 *
 * Limits: the depth of a JSON tree (JSON_TREE_DEPTH_MAX), the memory of the arena, and
 * SCHEMA_STEPS_MAX steps for a validation, for any schema and object.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_STRUCTURAL_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_STRUCTURAL_H

#include "codec/json/tree.h"
#include "kube/custom/schema/rule.h"
#include "kube/types/field_errors.h"

enum { SCHEMA_STEPS_MAX = 4 << 20, SCHEMA_EFFORT_MAX = 1 << 20, SCHEMA_UNKNOWN_MAX = 64 };
enum { SCHEMA_FORMATS_MAX = 16 }; /* reported */

enum schema_type {
    SCHEMA_STRING = 1 << 0,
    SCHEMA_NUMBER = 1 << 1,
    SCHEMA_INTEGER = 1 << 2,
    SCHEMA_BOOLEAN = 1 << 3,
    SCHEMA_ARRAY = 1 << 4,
    SCHEMA_OBJECT = 1 << 5,
};

enum schema_list_type { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

struct patterns;
struct regex;
struct schema;
struct schema_format;

struct schema_property {
    struct slice name;
    const struct schema *schema;
};

struct schema_list {
    const struct schema *const *schemas;
    size_t count;
};
struct schema_names {
    const struct slice *names;
    size_t count;
};

/*
 * Rare keywords; schemas without them share one struct. Absent limits are -1; those of numbers have
 * a flag.
 */
struct schema_more {
    bool has_minimum, has_maximum, has_multiple;
    bool exclusive_minimum, exclusive_maximum;
    double minimum, maximum, multiple_of;
    int64_t min_length, max_length, min_items, max_items, min_properties, max_properties;
    struct schema_names list_keys;
    const struct json_node *values;     /* values of enum: an array; NULL: none */
    struct slice pattern;               /* as written */
    const struct regex *regex;          /* NULL: none */
    struct slice format;                /* empty: none, or unknown */
    const struct regex *shape;          /* the regular expression of the format */
    const struct schema_format *checks; /* further check of the format; may be NULL */
    struct schema_list all_of, any_of, one_of;
    const struct schema * not ;
    const struct schema_rule *rules; /* in the order of the definition */
    size_t rule_count;
};

struct schema {
    uint8_t types;     /* bits of enum schema_type; 0: any */
    uint8_t list_type; /* enum schema_list_type */
    bool int_or_string : 1;
    bool nullable : 1;
    bool preserve_unknown : 1;
    bool embedded : 1;   /* a whole resource, with kind, apiVersion and metadata */
    bool has_rules : 1;  /* more->rule_count > 0 */
    bool has_meta : 1;   /* it describes what every resource has, with the right types */
    bool map_atomic : 1; /* x-kubernetes-map-type=atomic, for server-side apply */
    bool additional_given : 1, additional_allowed : 1;
    uint32_t effort;      /* maximal steps per byte of a value; SCHEMA_EFFORT_MAX: that or more */
    uint32_t least_bytes; /* bytes of the shortest value, as Kubernetes counts; 0: no type in CEL */
    uint32_t property_count;
    const struct schema_property *properties; /* sorted by name */
    const struct schema *items, *additional;  /* NULL: none */
    struct schema_names required;
    const struct json_node *preset; /* default; NULL: none */
    const struct schema_more *more;
};

/* Facts about a schema that compiling determines. */
struct schema_traits {
    bool has_defaults;
    bool has_rules;                                   /* it has CEL rules anywhere */
    struct slice unknown_formats[SCHEMA_FORMATS_MAX]; /* different ones, in their order */
    size_t unknown_format_count;
};

/*
 * ST_INVALID, with *error set; ST_LIMIT, ST_NOMEM. `patterns` must use the same arena. A node that
 * is not an object is an empty schema.
 */
MUST_CHECK
enum status schema_compile(struct arena *arena, struct patterns *patterns,
                           const struct json_node *node, const struct schema **ret_schema,
                           struct schema_traits *traits, struct error *error);

/* NULL if there is none. */
const struct schema *schema_property(const struct schema *schema, struct slice name);

/*
 * Removes unknown fields, and nulls that are not allowed. Appends the former to `unknown`, sorted:
 * unknown field "spec.a"; `unknown` may have text already, or be NULL. root: the value is a whole
 * resource, which keeps kind, apiVersion and metadata. ST_NOMEM.
 */
MUST_CHECK
enum status schema_prune(const struct schema *schema, struct json_node *value, bool root,
                         struct buf *unknown);

/* Fills in missing values that have a default. ST_NOMEM. */
MUST_CHECK
enum status schema_default(struct arena *arena, const struct schema *schema,
                           struct json_node *value);

/*
 * Validates a value and adds the errors, with fields below `path`. Parts that are unchanged from
 * `old` are not validated; NULL: there is no old value. `arena` is for temporary memory.
 */
void schema_validate(const struct schema *schema, const struct json_node *value,
                     const struct json_node *old, struct slice path, struct arena *arena,
                     struct kube_field_errors *errors);
/* The same for one of many values: takes the cost from *steps, initially SCHEMA_STEPS_MAX. */
void schema_validate_within(const struct schema *schema, const struct json_node *value,
                            const struct json_node *old, struct slice path, struct arena *arena,
                            int64_t *steps, struct kube_field_errors *errors);
/* Checks that embedded resources have kind and apiVersion. */
void schema_validate_embedded(const struct schema *schema, const struct json_node *value,
                              struct arena *arena, struct kube_field_errors *errors);
/* Checks that lists of type set and map have no duplicates. */
void schema_validate_lists(const struct schema *schema, const struct json_node *value,
                           struct arena *arena, struct kube_field_errors *errors);

#endif
