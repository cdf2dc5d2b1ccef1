/*
 * The schema of a custom resource, taken apart once: what CustomResourceDefinitions say in
 * openAPIV3Schema. Read-only after it was made, by any thread; lies in an arena, and nothing of the
 * JSON it was made from is needed any more. Parts that say the same are one, and so are patterns of
 * the same text: what is left is about as long as the text.
 *
 *     body ─► schema_prune ─► schema_default ─► schema_validate ─► stored
 *     stored ─► schema_prune ─► schema_default ─► seen, where the definition is newer than the
 * object
 *
 * Rules in CEL (x-kubernetes-validations) are known to be there, and are not run.
 * Bounds: as deep as a JSON tree is (JSON_TREE_DEPTH_MAX); memory at the arena's limit; a
 * validation takes SCHEMA_STEPS_MAX steps at most, whatever schema and object are.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_STRUCTURAL_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_STRUCTURAL_H

#include "codec/json/tree.h"
#include "kube/status/field_errors.h"

enum { SCHEMA_STEPS_MAX = 4 << 20, SCHEMA_EFFORT_MAX = 1 << 20 };

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

/* What few schemas say; all others share one that says nothing. Bounds that are not there are -1;
 * those of numbers have a flag. */
struct schema_more {
    bool has_minimum, has_maximum, has_multiple;
    bool exclusive_minimum, exclusive_maximum;
    double minimum, maximum, multiple_of;
    int64_t min_length, max_length, min_items, max_items, min_properties, max_properties;
    struct schema_names list_keys;
    const struct json_node *values;     /* enum: an array; NULL: none */
    struct slice pattern;               /* as written */
    const struct regex *regex;          /* NULL: none, or one that is not known here */
    struct slice format;                /* empty: none, or one that means nothing */
    const struct regex *shape;          /* of the format */
    const struct schema_format *checks; /* of the format, beyond its shape; may be NULL */
    struct schema_list all_of, any_of, one_of;
    const struct schema * not ;
};

struct schema {
    uint8_t types;     /* enum schema_type; 0: any */
    uint8_t list_type; /* enum schema_list_type */
    bool int_or_string : 1;
    bool nullable : 1;
    bool preserve_unknown : 1;
    bool embedded : 1; /* a resource of its own, with kind, apiVersion and metadata */
    bool has_rules : 1;
    bool map_atomic : 1; /* x-kubernetes-map-type: server-side apply takes it as a whole */
    bool additional_given : 1, additional_allowed : 1;
    uint32_t effort; /* steps for a byte of a value, at most; SCHEMA_EFFORT_MAX: that or more */
    uint32_t property_count;
    const struct schema_property *properties; /* by name */
    const struct schema *items, *additional;  /* NULL: none */
    struct schema_names required;
    const struct json_node *preset; /* default; NULL: none */
    const struct schema_more *more;
};

/* What compiling found besides. */
struct schema_traits {
    bool has_defaults;
    bool has_rules;          /* in CEL, anywhere */
    bool has_odd_patterns;   /* that are not known here, and so match everything */
    struct slice odd_format; /* one that means nothing; empty: none */
};

/* ST_INVALID: with an error for people; ST_LIMIT, ST_NOMEM. `patterns` use the same arena. A node
 * that is no object is an empty schema. */
MUST_CHECK
enum status schema_compile(struct arena *arena, struct patterns *patterns,
                           const struct json_node *node, const struct schema **ret_schema,
                           struct schema_traits *traits, struct error *error);

/* NULL: there is none. */
const struct schema *schema_property(const struct schema *schema, struct slice name);

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
void schema_validate(const struct schema *schema, const struct json_node *value,
                     const struct json_node *old, struct slice path, struct arena *arena,
                     struct kube_field_errors *errors);
/* The same, for one of many: takes what it costs from *steps; SCHEMA_STEPS_MAX to begin with. */
void schema_validate_within(const struct schema *schema, const struct json_node *value,
                            const struct json_node *old, struct slice path, struct arena *arena,
                            int64_t *steps, struct kube_field_errors *errors);
/* Lists that are sets and maps have no item twice, and embedded resources say what they are. */
void schema_validate_lists(const struct schema *schema, const struct json_node *value,
                           struct arena *arena, struct kube_field_errors *errors);

#endif
