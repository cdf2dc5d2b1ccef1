/*
 * What the built-in kinds are made of: types, their fields by JSON name and protobuf number, and
 * how lists are merged. One table of facts, made from Kubernetes' own types by
 * tools/kubegen-schema.py; strategic merge patches, protobuf and OpenAPI come from it. Read-only,
 * for any thread.
 *
 *     "apps/v1", "Deployment" ─► type ─► field "spec" ─► type DeploymentSpec ─► field "replicas" …
 */
#ifndef VIGIL_KUBE_SCHEMA_SCHEMA_H
#define VIGIL_KUBE_SCHEMA_SCHEMA_H

#include "base/slice.h"

/* What a field holds, or one item of it if it is a list or a map. */
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
    KUBE_VALUE_RAW, /* JSON of any kind: RawExtension, FieldsV1, JSON */
    /* of JSONSchemaProps, which is what kube_field_type gives: */
    KUBE_VALUE_SCHEMA_OR_BOOL,
    KUBE_VALUE_SCHEMA_OR_ARRAY,
    KUBE_VALUE_SCHEMA_OR_STRINGS,
};

/* Keys of maps are strings. A wrapped list is a message of its own in protobuf, as each list of a
 * map is. */
enum kube_field_shape {
    KUBE_SHAPE_ONE,
    KUBE_SHAPE_LIST,
    KUBE_SHAPE_WRAPPED_LIST,
    KUBE_SHAPE_MAP,
    KUBE_SHAPE_MAP_OF_LISTS
};

enum kube_field_flag {
    KUBE_FIELD_POINTER = 1 << 0,    /* in Go: absent is not the same as zero */
    KUBE_FIELD_OMIT_EMPTY = 1 << 1, /* Go leaves it out of JSON when it is zero, and no struct */
    KUBE_FIELD_OMIT_ZERO = 1 << 2,  /* also when it is a struct */
    KUBE_FIELD_INLINE = 1 << 3,     /* its members are members of what it is in, in JSON */
    KUBE_FIELD_REQUIRED = 1 << 4,
    KUBE_FIELD_MERGE = 1 << 5, /* patch strategies */
    KUBE_FIELD_REPLACE = 1 << 6,
    KUBE_FIELD_RETAIN_KEYS = 1 << 7,
};

/* Of lists, and of maps and messages: atomic, or granular although their type is atomic. */
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
    uint8_t number; /* of protobuf; 0: not in it, or inlined there too */
    uint8_t value;  /* enum kube_value */
    uint8_t shape;  /* enum kube_field_shape */
    uint8_t flags;  /* enum kube_field_flag */
    uint8_t list;   /* private */
};

struct kube_type {
    uint16_t name;  /* private */
    uint16_t first; /* private */
    uint8_t field_count;
    uint8_t package; /* private */
    uint8_t atomic;  /* replaced as a whole by server-side apply */
};

/* No type has more. */
enum { KUBE_TYPE_FIELDS_MAX = 64 };

/* NULL when there is none. Options of a delete are the same for every apiVersion. */
const struct kube_type *kube_type_find(struct slice api_version, struct slice kind);

const char *kube_type_name(const struct kube_type *type);    /* "PodSpec" */
const char *kube_type_package(const struct kube_type *type); /* "io.k8s.api.core.v1" */
/* Their number in the table, for sets of types. */
size_t kube_type_index(const struct kube_type *type);
const struct kube_type *kube_type_at(size_t index);
size_t kube_type_count(void);

/* In the order of Go's struct, which is that of its JSON. */
const struct kube_field *kube_type_fields(const struct kube_type *type);
/* By JSON name, also of what is inlined. NULL: none. */
const struct kube_field *kube_type_field(const struct kube_type *type, struct slice name);
/* By protobuf number. NULL: none. */
const struct kube_field *kube_type_number(const struct kube_type *type, uint64_t number);

struct slice kube_field_name(const struct kube_field *field); /* ends with a zero behind it */
/* NULL for what is no message. */
const struct kube_type *kube_field_type(const struct kube_field *field);
/* The member that tells items of a merged list apart; "": none, they are scalars. */
struct slice kube_field_merge_key(const struct kube_field *field);
enum kube_list_type kube_field_list_type(const struct kube_field *field);
/* "containerPort,protocol" */
struct slice kube_field_list_keys(const struct kube_field *field);
/* What an item that leaves a key out has instead, as JSON in the order of the keys: `0,"TCP"`;
 * nothing where there is none. */
struct slice kube_field_list_defaults(const struct kube_field *field);

/* Every kind of the table, in the order of apiVersion and kind. */
struct kube_type_kind {
    uint16_t api_version, kind; /* private */
    uint16_t type;              /* kube_type_at */
};
const struct kube_type_kind *kube_type_kinds(size_t *ret_count);
struct slice kube_type_kind_version(const struct kube_type_kind *kind);
struct slice kube_type_kind_name(const struct kube_type_kind *kind);

#endif
