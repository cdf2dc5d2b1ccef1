#include "kube/types/schema/openapi.h"

#include "base/crc32c.h"
#include "kube/types/schema/descriptions.h"
#include "kube/types/schema/gnostic.h"
#include "kube/types/schema/openapi_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define TITLE "Kubernetes"
#define VERSION "v1.36"
#define WRITTEN_AS "4" /* increment it whenever the form of the documents changes */

enum { PART_TREE_BYTES_MAX = 16 << 20 }; /* limit on the size of a part that becomes protobuf */

/*
 * The phases follow one another in this order:
 *
 *     HEAD ─► PATHS ─► OTHER_PATHS ─► MIDDLE ─► SCHEMAS ─► OTHER_SCHEMAS ─► TAIL ─► DONE
 *
 * PATHS, SCHEMAS and those of other kinds write one part per call until none is left.
 */
enum openapi_phase {
    PHASE_HEAD,
    PHASE_PATHS,
    PHASE_OTHER_PATHS,
    PHASE_MIDDLE,
    PHASE_SCHEMAS,
    PHASE_OTHER_SCHEMAS,
    PHASE_TAIL,
    PHASE_DONE
};

struct kube_openapi {
    char api_version[128]; /* empty: all */
    enum kube_openapi_form form;
    bool protobuf;
    enum openapi_phase phase;
    size_t at;       /* index of the next kind or type */
    struct buf part; /* generated but not yet read */
    size_t read;
    struct json_writer writer;
    enum status (*write_other)(void *ctx, bool schemas, struct json_writer *w, bool *ret_more);
    void *others; /* context of write_other, if that is not NULL */
    bool uses[];  /* for each type */
};

/* -- Names -- */

const char *openapi_document_of(const struct kube_kind *kind, char text[OPENAPI_NAME_BYTES])
{
    snprintf(text, OPENAPI_NAME_BYTES, "%s%s/%s", kind->group[0] ? "apis/" : "api", kind->group,
             kind->version);
    return text;
}

const char *kube_openapi_hash(void)
{
    static _Thread_local char text[32];
    uint32_t hash = crc32c(0, SLICE_LITERAL(WRITTEN_AS));
    /* The types are constant, so the hash is computed once for each thread. */
    if (text[0])
        return text;
    for (size_t i = 0; i < kube_type_count(); i++) {
        const struct kube_type *type = kube_type_at(i);
        const struct kube_field *fields = kube_type_fields(type);
        hash = crc32c(hash, slice_from_text(kube_type_name(type)));
        for (size_t f = 0; f < type->field_count; f++) {
            uint8_t facts[] = {fields[f].value, fields[f].shape, fields[f].flags};
            hash = crc32c(hash, kube_field_name(&fields[f]));
            hash = crc32c(hash, slice_of(facts, sizeof(facts)));
        }
    }
    snprintf(text, sizeof(text), "%08X", hash);
    return text;
}

/* -- The index -- */

enum status kube_openapi_index(struct buf *out, const struct kube_openapi_others *others)
{
    struct json_writer w;
    size_t count;
    char name[OPENAPI_NAME_BYTES], last[OPENAPI_NAME_BYTES] = "", url[OPENAPI_NAME_BYTES + 64],
                                   version[KUBE_API_VERSION_BYTES];
    char text[KUBE_OPENAPI_HASH_BYTES];
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    json_writer_init(&w, out);
    json_begin_object(&w);
    json_member_object(&w, "paths");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(openapi_document_of(&kinds[i], name), last) == 0)
            continue;
        memcpy(last, name, sizeof(last));
        struct slice of = slice_from_text(kube_kind_api_version(&kinds[i], version));
        snprintf(url, sizeof(url), "/openapi/v3/%s?hash=%s", name,
                 others ? others->hash(others->ctx, of, text) : kube_openapi_hash());
        json_member_object(&w, name);
        json_member_text(&w, "serverRelativeURL", url);
        json_end_object(&w);
    }
    if (others)
        others->write_rows(others->ctx, &w);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* -- Schemas -- */

void openapi_write_ref(struct json_writer *w, const struct kube_type *type,
                       enum kube_openapi_form form)
{
    char text[OPENAPI_NAME_BYTES];
    bool v3 = form == KUBE_OPENAPI_V3;
    snprintf(text, sizeof(text), "#/%s/%s.%s", v3 ? "components/schemas" : "definitions",
             kube_type_package(type), kube_type_name(type));
    if (v3) {
        json_member_array(w, "allOf");
        json_begin_object(w);
    }
    json_member_text(w, "$ref", text);
    if (v3) {
        json_end_object(w);
        json_end_array(w);
    }
}

static void write_one_of(struct json_writer *w, const char *first, const char *second)
{
    json_member_array(w, "oneOf");
    json_begin_object(w);
    json_member_text(w, "type", first);
    json_end_object(w);
    json_begin_object(w);
    json_member_text(w, "type", second);
    json_end_object(w);
    json_end_array(w);
}

/* Writes the members of the schema of one value. */
static void write_value(struct json_writer *w, const struct kube_field *field,
                        enum kube_openapi_form form)
{
    static const char *const names[][2] = {
        [KUBE_VALUE_STRING] = {"string", NULL},
        [KUBE_VALUE_BOOL] = {"boolean", NULL},
        [KUBE_VALUE_INT32] = {"integer", "int32"},
        [KUBE_VALUE_INT64] = {"integer", "int64"},
        [KUBE_VALUE_DOUBLE] = {"number", "double"},
        [KUBE_VALUE_BYTES] = {"string", "byte"},
        [KUBE_VALUE_TIME] = {"string", "date-time"},
        [KUBE_VALUE_MICROTIME] = {"string", "date-time"},
        [KUBE_VALUE_INTORSTRING] = {NULL, "int-or-string"},
    };
    bool v3 = form == KUBE_OPENAPI_V3;
    if (field->value < COUNT_OF(names) && names[field->value][0])
        json_member_text(w, "type", names[field->value][0]);
    if (field->value < COUNT_OF(names) && names[field->value][1])
        json_member_text(w, "format", names[field->value][1]);
    if (field->value == KUBE_VALUE_MESSAGE) {
        openapi_write_ref(w, kube_field_type(field), form);
    } else if (field->value == KUBE_VALUE_QUANTITY && v3) {
        write_one_of(w, "string", "number");
    } else if (field->value == KUBE_VALUE_INTORSTRING && v3) {
        write_one_of(w, "integer", "string");
    } else if (field->value == KUBE_VALUE_QUANTITY || field->value == KUBE_VALUE_INTORSTRING) {
        json_member_text(w, "type", "string"); /* version 2 has no alternatives */
    } else if (field->value >= KUBE_VALUE_RAW) {
        /* A schema for any JSON. `kubectl explain` cannot print a schema without members. */
        json_member_bool(w, "x-kubernetes-preserve-unknown-fields", true);
    }
}

static void write_extensions(struct json_writer *w, const struct kube_field *field)
{
    static const char *const lists[] = {NULL, "atomic", "set", "map", "granular"};
    struct slice merge_key = kube_field_merge_key(field), keys = kube_field_list_keys(field);
    unsigned flags = field->flags;
    const char *strategy = flags & KUBE_FIELD_REPLACE ? "replace"
                           : flags & KUBE_FIELD_MERGE
                               ? (flags & KUBE_FIELD_RETAIN_KEYS ? "merge,retainKeys" : "merge")
                           : flags & KUBE_FIELD_RETAIN_KEYS ? "retainKeys"
                                                            : NULL;
    const char *list = lists[kube_field_list_type(field)];
    if (list)
        json_member_text(
            w, field->shape == KUBE_SHAPE_LIST ? "x-kubernetes-list-type" : "x-kubernetes-map-type",
            list);
    if (keys.len) {
        json_member_array(w, "x-kubernetes-list-map-keys");
        while (keys.len) {
            const uint8_t *comma = memchr(keys.ptr, ',', keys.len);
            size_t len = comma ? (size_t)(comma - keys.ptr) : keys.len;
            json_string(w, slice_sub(keys, 0, len));
            keys = slice_sub(keys, size_min(len + 1, keys.len),
                             keys.len - size_min(len + 1, keys.len));
        }
        json_end_array(w);
    }
    if (strategy)
        json_member_text(w, "x-kubernetes-patch-strategy", strategy);
    if (merge_key.len)
        json_member_text(w, "x-kubernetes-patch-merge-key", (const char *)merge_key.ptr);
}

static void write_property(struct json_writer *w, const struct kube_type *type,
                           const struct kube_field *field, enum kube_openapi_form form)
{
    /* A map of lists nests both: additionalProperties with items. */
    bool map = field->shape >= KUBE_SHAPE_MAP;
    const char *description = kube_field_description(type, field);
    json_member_object(w, (const char *)kube_field_name(field).ptr);
    if (description)
        json_member_text(w, "description", description);
    if (map) {
        json_member_text(w, "type", "object");
        json_member_object(w, "additionalProperties");
    }
    if (field->shape == KUBE_SHAPE_LIST || field->shape == KUBE_SHAPE_WRAPPED_LIST ||
        field->shape == KUBE_SHAPE_MAP_OF_LISTS) {
        json_member_text(w, "type", "array");
        json_member_object(w, "items");
    }
    write_value(w, field, form);
    if (field->shape == KUBE_SHAPE_LIST || field->shape == KUBE_SHAPE_WRAPPED_LIST ||
        field->shape == KUBE_SHAPE_MAP_OF_LISTS)
        json_end_object(w);
    if (map)
        json_end_object(w);
    write_extensions(w, field);
    json_end_object(w);
}

static void write_properties(struct json_writer *w, const struct kube_type *type,
                             enum kube_openapi_form form)
{
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (field->flags & KUBE_FIELD_INLINE)
            write_properties(w, kube_field_type(field), form);
        else
            write_property(w, type, field, form);
    }
}

static void write_required(struct json_writer *w, const struct kube_type *type)
{
    const struct kube_field *field = kube_type_fields(type);
    bool any = false;
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (!(field->flags & KUBE_FIELD_REQUIRED))
            continue;
        if (!any) {
            json_member_array(w, "required");
        }
        any = true;
        json_text(w, (const char *)kube_field_name(field).ptr);
    }
    if (any)
        json_end_array(w);
}

void openapi_write_gvk(struct json_writer *w, struct slice api_version, struct slice kind)
{
    const uint8_t *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    size_t group = slash ? (size_t)(slash - api_version.ptr) : 0, skip = slash ? group + 1 : 0;
    json_begin_object(w);
    json_member_string(w, "group", slice_sub(api_version, 0, group));
    json_member_string(w, "kind", kind);
    json_member_string(w, "version", slice_sub(api_version, skip, api_version.len - skip));
    json_end_object(w);
}

/* Writes the kinds that have this type, if any. */
static void write_kinds(struct json_writer *w, const struct kube_type *type)
{
    size_t count;
    const struct kube_type_kind *kinds = kube_type_kinds(&count);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (kinds[i].type != kube_type_index(type))
            continue;
        if (!any) {
            json_member_array(w, "x-kubernetes-group-version-kind");
        }
        any = true;
        openapi_write_gvk(w, kube_type_kind_version(&kinds[i]), kube_type_kind_name(&kinds[i]));
    }
    if (any)
        json_end_array(w);
}

/* A type that only one kind has is described by the name of the kind; Kubernetes' own texts are not
 * included. */
static void write_description(struct json_writer *w, const struct kube_type *type)
{
    size_t count, found = 0;
    const struct kube_type_kind *kinds = kube_type_kinds(&count), *kind = NULL;
    char text[OPENAPI_NAME_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (kinds[i].type != kube_type_index(type))
            continue;
        kind = &kinds[i];
        found++;
    }
    if (found != 1)
        return;
    struct slice name = kube_type_kind_name(kind), version = kube_type_kind_version(kind);
    snprintf(text, sizeof(text), "%.*s of %.*s.", SLICE_ARGS(name), SLICE_ARGS(version));
    json_member_text(w, "description", text);
}

static void write_schema(struct json_writer *w, const struct kube_type *type,
                         enum kube_openapi_form form)
{
    char name[OPENAPI_NAME_BYTES];
    snprintf(name, sizeof(name), "%s.%s", kube_type_package(type), kube_type_name(type));
    json_member_object(w, name);
    write_description(w, type);
    json_member_text(w, "type", "object");
    write_required(w, type);
    if (type->field_count) {
        json_member_object(w, "properties");
        write_properties(w, type, form);
        json_end_object(w);
    }
    write_kinds(w, type);
    if (type->atomic)
        json_member_text(w, "x-kubernetes-map-type", "atomic");
    json_end_object(w);
}

/* -- Documents -- */

/* Marks every type that this type contains. The recursion ends at types that are already marked. */
static void mark_used(struct kube_openapi *d, const struct kube_type *type)
{
    const struct kube_field *field = kube_type_fields(type);
    if (d->uses[kube_type_index(type)])
        return;
    d->uses[kube_type_index(type)] = true;
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (kube_field_type(field))
            mark_used(d, kube_field_type(field));
    }
}

enum status kube_openapi_write_meta(struct json_writer *w)
{
    AUTO(kube_openapi_closep)
    struct kube_openapi *d = calloc(1, sizeof(*d) + kube_type_count() * sizeof(d->uses[0]));
    if (!d)
        return ST_NOMEM;
    for (size_t i = 0; i < kube_type_count(); i++) {
        const char *name = kube_type_name(kube_type_at(i));
        if (strcmp(name, "ObjectMeta") == 0 || strcmp(name, "ListMeta") == 0)
            mark_used(d, kube_type_at(i));
    }
    for (size_t i = 0; i < kube_type_count(); i++)
        if (d->uses[i])
            write_schema(w, kube_type_at(i), KUBE_OPENAPI_V3);
    return ST_OK;
}

static bool is_of(const struct kube_openapi *d, const struct kube_kind *kind)
{
    char version[KUBE_API_VERSION_BYTES];
    return !d->api_version[0] || strcmp(kube_kind_api_version(kind, version), d->api_version) == 0;
}

enum status kube_openapi_open(struct slice api_version, struct kube_openapi **ret_document)
{
    size_t count, found = 0;
    AUTO(kube_openapi_closep)
    struct kube_openapi *d = calloc(1, sizeof(*d) + kube_type_count() * sizeof(d->uses[0]));
    if (!d)
        return ST_NOMEM;
    if (!api_version.len || api_version.len >= sizeof(d->api_version))
        return ST_NOT_FOUND;
    slice_copy(d->api_version, api_version);
    json_writer_init(&d->writer, &d->part);
    const struct kube_type_kind *kinds = kube_type_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(kube_type_kind_version(&kinds[i]), api_version))
            mark_used(d, kube_type_at(kinds[i].type));
    }
    const struct kube_kind *builtin = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        found += is_of(d, &builtin[i]);
    if (!found)
        return ST_NOT_FOUND;
    *ret_document = TAKE(d);
    return ST_OK;
}

enum status kube_openapi_open_v2(bool protobuf, struct kube_openapi **ret_document)
{
    struct kube_openapi *d = calloc(1, sizeof(*d) + kube_type_count() * sizeof(d->uses[0]));
    if (!d)
        return ST_NOMEM;
    d->form = KUBE_OPENAPI_V2;
    d->protobuf = protobuf;
    json_writer_init(&d->writer, &d->part);
    for (size_t i = 0; i < kube_type_count(); i++)
        d->uses[i] = true;
    *ret_document = d;
    return ST_OK;
}

void kube_openapi_close(struct kube_openapi *document)
{
    if (!document)
        return;
    buf_fini(&document->part);
    free(document);
}

static void make_head(struct kube_openapi *d)
{
    struct json_writer *w = &d->writer;
    json_begin_object(w);
    if (d->form == KUBE_OPENAPI_V3)
        json_member_text(w, "openapi", "3.0.0");
    else
        json_member_text(w, "swagger", "2.0");
    json_member_object(w, "info");
    json_member_text(w, "title", TITLE);
    json_member_text(w, "version", VERSION);
    json_end_object(w);
    json_member_object(w, "paths");
}

static void make_middle(struct kube_openapi *d)
{
    json_end_object(&d->writer);
    if (d->form == KUBE_OPENAPI_V3) {
        json_member_object(&d->writer, "components");
    }
    json_member_object(&d->writer, d->form == KUBE_OPENAPI_V3 ? "schemas" : "definitions");
}

void kube_openapi_add_others(struct kube_openapi *d,
                             enum status (*write)(void *ctx, bool schemas, struct json_writer *w,
                                                  bool *ret_more),
                             void *ctx)
{
    d->write_other = write;
    d->others = ctx;
}

/* False: there is none left. */
static bool make_other(struct kube_openapi *d, bool schemas)
{
    bool more = false;
    enum status status =
        d->write_other ? d->write_other(d->others, schemas, &d->writer, &more) : ST_OK;
    if (status != ST_OK)
        d->writer.status = status;
    return more && status == ST_OK;
}

/* Generates the next part, at most the paths of one kind or one schema; it may be empty. */
static void make_part(struct kube_openapi *d)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    switch (d->phase) {
    case PHASE_HEAD:
        make_head(d);
        break;
    case PHASE_PATHS:
        if (is_of(d, &kinds[d->at]))
            kube_openapi_write_paths(&d->writer, &kinds[d->at], d->form);
        if (++d->at < count)
            return;
        break;
    case PHASE_OTHER_PATHS:
    case PHASE_OTHER_SCHEMAS:
        if (make_other(d, d->phase == PHASE_OTHER_SCHEMAS))
            return;
        break;
    case PHASE_MIDDLE:
        make_middle(d);
        break;
    case PHASE_SCHEMAS:
        if (d->uses[d->at])
            write_schema(&d->writer, kube_type_at(d->at), d->form);
        if (++d->at < kube_type_count())
            return;
        break;
    case PHASE_TAIL:
        for (int i = 0; i < (d->form == KUBE_OPENAPI_V3 ? 3 : 2); i++)
            json_end_object(&d->writer);
        break;
    case PHASE_DONE:
        return;
    }
    /* The phase is complete; otherwise a case above has returned. */
    assert(d->phase < PHASE_DONE);
    d->phase++;
    d->at = 0;
}

/* The part, which consists of members of an object, as protobuf. */
static enum status encode_part(struct kube_openapi *d, enum openapi_phase phase)
{
    AUTO(buf_fini) struct buf text = {0}, encoded = {0};
    AUTO(arena_fini) struct arena arena = {0};
    struct slice members = buf_slice(&d->part);
    struct json_node *tree;
    struct error error;
    bool paths = phase == PHASE_PATHS || phase == PHASE_OTHER_PATHS;
    if (members.len && members.ptr[0] == ',')
        members = slice_sub(members, 1, members.len - 1);
    if (phase == PHASE_HEAD)
        TRY(gnostic_write_head(TITLE, VERSION, &encoded));
    if ((paths || phase == PHASE_SCHEMAS || phase == PHASE_OTHER_SCHEMAS) && members.len) {
        arena_init(&arena, NULL, 0, PART_TREE_BYTES_MAX);
        TRY(buf_append_text(&text, "{"));
        TRY(buf_append(&text, members));
        TRY(buf_append_text(&text, "}"));
        TRY(json_tree_read(&arena, buf_slice(&text), &tree, &error));
        TRY(paths ? gnostic_write_paths(tree, &encoded)
                  : gnostic_write_definitions(tree, &encoded));
    }
    d->part.len = 0;
    return buf_append(&d->part, buf_slice(&encoded));
}

enum status kube_openapi_read(struct kube_openapi *d, uint8_t *dst, size_t room, size_t *ret_len)
{
    size_t len = 0;
    while (len < room) {
        if (d->read == d->part.len) {
            if (d->phase == PHASE_DONE)
                break;
            d->part.len = d->read = 0;
            enum openapi_phase phase = d->phase;
            make_part(d);
            TRY(d->writer.status);
            if (d->protobuf)
                TRY(encode_part(d, phase));
            continue;
        }
        size_t n = size_min(room - len, d->part.len - d->read);
        slice_copy(dst + len, slice_of(d->part.ptr + d->read, n));
        d->read += n;
        len += n;
    }
    *ret_len = len;
    return ST_OK;
}
