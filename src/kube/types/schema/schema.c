#include "kube/types/schema/schema.h"

#include <pthread.h>
#include <stdlib.h>

/* The names of enum values in schema_rows.inc. */
enum {
    STRING = KUBE_VALUE_STRING,
    BOOL = KUBE_VALUE_BOOL,
    INT32 = KUBE_VALUE_INT32,
    INT64 = KUBE_VALUE_INT64,
    DOUBLE = KUBE_VALUE_DOUBLE,
    BYTES = KUBE_VALUE_BYTES,
    MESSAGE = KUBE_VALUE_MESSAGE,
    TIME = KUBE_VALUE_TIME,
    MICROTIME = KUBE_VALUE_MICROTIME,
    QUANTITY = KUBE_VALUE_QUANTITY,
    INTORSTRING = KUBE_VALUE_INTORSTRING,
    RAW = KUBE_VALUE_RAW,
    SCHEMA_OR_BOOL = KUBE_VALUE_SCHEMA_OR_BOOL,
    SCHEMA_OR_ARRAY = KUBE_VALUE_SCHEMA_OR_ARRAY,
    SCHEMA_OR_STRINGS = KUBE_VALUE_SCHEMA_OR_STRINGS,
    ONE = KUBE_SHAPE_ONE,
    LIST = KUBE_SHAPE_LIST,
    WRAPPED_LIST = KUBE_SHAPE_WRAPPED_LIST,
    MAP = KUBE_SHAPE_MAP,
    MAP_OF_LISTS = KUBE_SHAPE_MAP_OF_LISTS,
    POINTER = KUBE_FIELD_POINTER,
    OMIT_EMPTY = KUBE_FIELD_OMIT_EMPTY,
    OMIT_ZERO = KUBE_FIELD_OMIT_ZERO,
    INLINE = KUBE_FIELD_INLINE,
    REQUIRED = KUBE_FIELD_REQUIRED,
    MERGE = KUBE_FIELD_MERGE,
    REPLACE = KUBE_FIELD_REPLACE,
    RETAIN_KEYS = KUBE_FIELD_RETAIN_KEYS,
    LIST_NONE = KUBE_LIST_NONE,
    LIST_ATOMIC = KUBE_LIST_ATOMIC,
    LIST_SET = KUBE_LIST_SET,
    LIST_MAP = KUBE_LIST_MAP,
    LIST_GRANULAR = KUBE_LIST_GRANULAR,
};

struct list_row {
    uint16_t merge_key;
    uint8_t type; /* enum kube_list_type */
    uint16_t keys, defaults;
};

static const struct kube_field fields[] = {
#define KUBE_SCHEMA_FIELDS
#include "kube/types/schema/schema_rows.inc"
};
static const struct kube_type types[] = {
#define KUBE_SCHEMA_TYPES
#include "kube/types/schema/schema_rows.inc"
};
static const struct kube_type_kind kinds[] = {
#define KUBE_SCHEMA_KINDS
#include "kube/types/schema/schema_rows.inc"
};
static const struct list_row lists[] = {
#define KUBE_SCHEMA_LISTS
#include "kube/types/schema/schema_rows.inc"
};
static const char *const packages[] = {
#define KUBE_SCHEMA_PACKAGES
#include "kube/types/schema/schema_rows.inc"
};
static const char pool[] =
#define KUBE_SCHEMA_POOL
#include "kube/types/schema/schema_rows.inc"
    ;

static struct slice text_at(uint16_t at)
{
    return slice_of(pool + at + 1, (uint8_t)pool[at]);
}

/* -- Types -- */

struct type_query {
    struct slice api_version, kind;
};

static int compare(const void *key, const void *row)
{
    const struct type_query *wanted = key;
    const struct kube_type_kind *kind = row;
    int order = slice_compare(wanted->api_version, text_at(kind->api_version));
    return order ? order : slice_compare(wanted->kind, text_at(kind->kind));
}

const struct kube_type *kube_type_find(struct slice api_version, struct slice kind)
{
    struct type_query wanted = {api_version, kind};
    if (slice_is(kind, "DeleteOptions"))
        wanted.api_version = SLICE_LITERAL("v1");
    const struct kube_type_kind *row =
        bsearch(&wanted, kinds, COUNT_OF(kinds), sizeof(kinds[0]), compare);
    return row ? &types[row->type] : NULL;
}

const struct kube_type *kube_type_of_kind(const struct kube_kind *kind)
{
    char text[KUBE_API_VERSION_BYTES];
    return kube_type_find(slice_from_text(kube_kind_api_version(kind, text)),
                          slice_from_text(kind->kind));
}

const struct kube_type_kind *kube_type_kinds(size_t *ret_count)
{
    *ret_count = COUNT_OF(kinds);
    return kinds;
}

struct slice kube_type_kind_version(const struct kube_type_kind *kind)
{
    return text_at(kind->api_version);
}

struct slice kube_type_kind_name(const struct kube_type_kind *kind)
{
    return text_at(kind->kind);
}

const char *kube_type_name(const struct kube_type *type)
{
    return pool + type->name + 1;
}

const char *kube_type_package(const struct kube_type *type)
{
    return packages[type->package];
}

size_t kube_type_index(const struct kube_type *type)
{
    return (size_t)(type - types);
}

const struct kube_type *kube_type_at(size_t index)
{
    assert(index < COUNT_OF(types));
    return &types[index];
}

size_t kube_type_count(void)
{
    return COUNT_OF(types);
}

/* -- Fields -- */

const struct kube_field *kube_type_fields(const struct kube_type *type)
{
    return &fields[type->first];
}

/*
 * Every field by its type and name, those of inlined structs also by the type that inlines them: an
 * open hash table, built at the first use. Objects have about a hundred members, and the types of
 * pods and containers have dozens of fields.
 */
enum { SLOTS = 8192 };
static struct slot {
    const struct kube_field *field; /* NULL: free */
    uint16_t type;
} slots[SLOTS];

/* Loads the first and the last eight bytes, which overlap in most names. */
static size_t slot_of(size_t type, struct slice name)
{
    uint64_t first = 0, last = 0;
    size_t some = size_min(name.len, sizeof(first));
    if (some == sizeof(first)) {
        memcpy(&first, name.ptr, sizeof(first));
        memcpy(&last, name.ptr + name.len - sizeof(last), sizeof(last));
    } else {
        for (size_t i = 0; i < some; i++)
            first = first << 8 | name.ptr[i];
    }
    uint64_t hash = (first ^ last * UINT64_C(0x9e3779b97f4a7c15) ^ type << 17 ^ name.len) *
                    UINT64_C(0xff51afd7ed558ccd);
    return hash >> 51;
}

/* Returns how many there are. */
static size_t add_fields(size_t outer, const struct kube_type *type)
{
    size_t count = 0;
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (field->flags & KUBE_FIELD_INLINE) {
            count += add_fields(outer, &types[field->type]);
            continue;
        }
        size_t at = slot_of(outer, text_at(field->name));
        while (slots[at].field && (slots[at].type != outer || slots[at].field->name != field->name))
            at = (at + 1) % SLOTS;
        if (!slots[at].field)
            slots[at] = (struct slot){field, (uint16_t)outer};
        count++;
    }
    return count;
}

static void build_slots(void)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        count += add_fields(i, &types[i]);
    assert(count <= SLOTS / 2); /* so that a search is short */
}

const struct kube_field *kube_type_field(const struct kube_type *type, struct slice name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_slots);
    size_t index = kube_type_index(type), at = slot_of(index, name);
    for (; slots[at].field; at = (at + 1) % SLOTS) {
        if (slots[at].type == index && slice_equal(text_at(slots[at].field->name), name))
            return slots[at].field;
    }
    return NULL;
}

const struct kube_type *kube_type_metadata(void)
{
    const struct kube_type *type = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("ConfigMap"));
    const struct kube_field *field = type ? kube_type_field(type, SLICE_LITERAL("metadata")) : NULL;
    return field ? kube_field_type(field) : NULL;
}

const struct kube_field *kube_type_number(const struct kube_type *type, uint64_t number)
{
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (field->number == number)
            return number ? field : NULL;
    }
    return NULL;
}

struct slice kube_field_name(const struct kube_field *field)
{
    return text_at(field->name);
}

const struct kube_type *kube_field_type(const struct kube_field *field)
{
    bool message = field->value == KUBE_VALUE_MESSAGE || field->value >= KUBE_VALUE_SCHEMA_OR_BOOL;
    return message ? &types[field->type] : NULL;
}

struct slice kube_field_merge_key(const struct kube_field *field)
{
    return text_at(lists[field->list].merge_key);
}

enum kube_list_type kube_field_list_type(const struct kube_field *field)
{
    return (enum kube_list_type)lists[field->list].type;
}

struct slice kube_field_list_keys(const struct kube_field *field)
{
    return text_at(lists[field->list].keys);
}

struct slice kube_field_list_defaults(const struct kube_field *field)
{
    return text_at(lists[field->list].defaults);
}
