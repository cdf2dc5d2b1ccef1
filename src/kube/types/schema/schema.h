/*
 * The types of the built-in kinds: their fields by JSON name and protobuf number, and how lists are
 * merged. tools/kubegen-schema.py generates the table from Kubernetes' own types; strategic merge
 * patches, protobuf and OpenAPI are derived from it. Read-only, for any thread.
 *
 *     "apps/v1", "Deployment" ─► type ─► field "spec" ─► type DeploymentSpec ─► field "replicas" …
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_SCHEMA_H
#define VIGIL_KUBE_TYPES_SCHEMA_SCHEMA_H

#include "base/slice.h"
#include "kube/types/kind.h"

/* The value of a field, or of one item if it is a list or a map. */
enum kube_value {
    KUBE_VALUE_STRING,
    KUBE_VALUE_BOOL,
    KUBE_VALUE_INT32,
    KUBE_VALUE_INT64,
    KUBE_VALUE_DOUBLE,
    KUBE_VALUE_BYTES,
    KUBE_VALUE_MESSAGE,
    KUBE_VALUE_TIME,
    KUBE_VALUE_MICROTIME,
    KUBE_VALUE_QUANTITY,
    KUBE_VALUE_INTORSTRING,
    KUBE_VALUE_RAW, /* any JSON: RawExtension, FieldsV1, JSON */
    /* alternatives with JSONSchemaProps, which kube_field_type returns: */
    KUBE_VALUE_SCHEMA_OR_BOOL,
    KUBE_VALUE_SCHEMA_OR_ARRAY,
    KUBE_VALUE_SCHEMA_OR_STRINGS,
};

/*
 * Keys of maps are strings. A wrapped list is a message of its own in protobuf; so is each list in
 * a map.
 */
enum kube_field_shape {
    KUBE_SHAPE_ONE,
    KUBE_SHAPE_LIST,
    KUBE_SHAPE_WRAPPED_LIST,
    KUBE_SHAPE_MAP,
    KUBE_SHAPE_MAP_OF_LISTS
};

enum kube_field_flag {
    KUBE_FIELD_POINTER = 1 << 0,    /* a pointer in Go: absent differs from zero */
    KUBE_FIELD_OMIT_EMPTY = 1 << 1, /* Go omits it from JSON if it is zero, unless it is a struct */
    KUBE_FIELD_OMIT_ZERO = 1 << 2,  /* also if it is a struct */
    KUBE_FIELD_INLINE = 1 << 3,     /* in JSON, its members are members of the enclosing object */
    KUBE_FIELD_REQUIRED = 1 << 4,
    KUBE_FIELD_MERGE = 1 << 5, /* patch strategies */
    KUBE_FIELD_REPLACE = 1 << 6,
    KUBE_FIELD_RETAIN_KEYS = 1 << 7,
};

/* For lists, and for maps and messages: atomic, or granular although the type is atomic. */
enum kube_list_type {
    KUBE_LIST_NONE,
    KUBE_LIST_ATOMIC,
    KUBE_LIST_SET,
    KUBE_LIST_MAP,
    KUBE_LIST_GRANULAR,
};

struct kube_field {
    uint16_t name;  /* private: see kube_field_name */
    uint16_t type;  /* private */
    uint8_t number; /* in protobuf; 0: absent there, or inlined there as well */
    uint8_t value;  /* one of enum kube_value */
    uint8_t shape;  /* one of enum kube_field_shape */
    uint8_t flags;  /* bits of enum kube_field_flag */
    uint8_t list;   /* private */
};

struct kube_type {
    uint16_t name;  /* private */
    uint16_t first; /* private */
    uint8_t field_count;
    uint8_t package; /* private */
    uint8_t atomic;  /* server-side apply owns it as a whole */
};

/* Maximal number of fields of a type. */
enum { KUBE_TYPE_FIELDS_MAX = 64 };

/* NULL if there is none. DeleteOptions are found for every apiVersion. */
const struct kube_type *kube_type_find(struct slice api_version, struct slice kind);
const struct kube_type *kube_type_of_kind(const struct kube_kind *kind);
/* ObjectMeta, the metadata of every object. */
const struct kube_type *kube_type_metadata(void);

const char *kube_type_name(const struct kube_type *type);    /* "PodSpec" */
const char *kube_type_package(const struct kube_type *type); /* "io.k8s.api.core.v1" */
/* The number of a type in the table, for sets of types. */
size_t kube_type_index(const struct kube_type *type);
const struct kube_type *kube_type_at(size_t index);
size_t kube_type_count(void);

/* The fields in the order of Go's struct, which is also that of its JSON. */
const struct kube_field *kube_type_fields(const struct kube_type *type);
/* Finds a field by JSON name, also in inlined structs. NULL: none. */
const struct kube_field *kube_type_field(const struct kube_type *type, struct slice name);
/* Finds a field by protobuf number. NULL: none. */
const struct kube_field *kube_type_number(const struct kube_type *type, uint64_t number);

struct slice kube_field_name(const struct kube_field *field); /* followed by a zero byte */
/* NULL if the value is not a message. */
const struct kube_type *kube_field_type(const struct kube_field *field);
/* The member that identifies items of a merged list; "": none, the items are scalars. */
struct slice kube_field_merge_key(const struct kube_field *field);
enum kube_list_type kube_field_list_type(const struct kube_field *field);
/* "containerPort,protocol" */
struct slice kube_field_list_keys(const struct kube_field *field);
/*
 * Defaults of key members that an item omits, as JSON in the order of the keys: `0,"TCP"`; empty
 * where there is none.
 */
struct slice kube_field_list_defaults(const struct kube_field *field);

/* Every kind of the table, ordered by apiVersion and kind. */
struct kube_type_kind {
    uint16_t api_version, kind; /* private */
    uint16_t type;              /* see kube_type_at */
};
const struct kube_type_kind *kube_type_kinds(size_t *ret_count);
struct slice kube_type_kind_version(const struct kube_type_kind *kind);
struct slice kube_type_kind_name(const struct kube_type_kind *kind);

#endif
