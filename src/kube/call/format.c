#include "kube/call/format.h"

#include "kube/call/call.h"
#include "kube/call/shape.h"
#include "kube/types/schema/protobuf.h"
#include "yaml/yaml.h"

/* -- From JSON -- */

static enum status write_tree(enum kube_format format, const char *event, struct arena *arena,
                              struct slice json, struct buf *to)
{
    struct json_node *root;
    struct error error;
    TRY(json_tree_read(arena, json, &root, &error));
    if (format == KUBE_YAML)
        return yaml_tree_write(arena, root, to);
    return event ? kube_protobuf_encode_event(arena, event, root, to, &error)
                 : kube_protobuf_encode(arena, root, to, &error);
}

static enum status write_with(enum kube_format format, const char *event, struct slice json,
                              struct buf *to)
{
    uint8_t first[4096];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), KUBE_CALL_ARENA_BYTES_MAX);
    enum status status = write_tree(format, event, &arena, json, to);
    arena_fini(&arena);
    return status;
}

enum status kube_format_write(enum kube_format format, struct slice json, struct buf *to)
{
    return format == KUBE_JSON ? buf_append(to, json) : write_with(format, NULL, json, to);
}

enum status kube_format_event(const char *type, struct slice object, struct buf *to)
{
    return write_with(KUBE_PROTOBUF, type, object, to);
}

enum status kube_format_error(const struct kube_status *status, bool protobuf, struct buf *to)
{
    AUTO(buf_fini) struct buf json = {0};
    if (!protobuf)
        return kube_status_write_event(status, to);
    TRY(kube_status_write(status, &json));
    return kube_format_event("ERROR", buf_slice(&json), to);
}

enum status kube_format_bookmark(const struct kube_shaping *shaping, int64_t revision,
                                 bool initial_end, bool columns, bool protobuf, struct buf *to)
{
    AUTO(buf_fini) struct buf json = {0};
    if (protobuf) {
        TRY(kube_shape_bookmark(shaping, revision, initial_end, false, &json));
        return kube_format_event("BOOKMARK", buf_slice(&json), to);
    }
    TRY(buf_append_text(to, "{\"type\":\"BOOKMARK\",\"object\":"));
    TRY(kube_shape_bookmark(shaping, revision, initial_end, columns, to));
    return buf_append_text(to, "}\n");
}

/* -- Lists -- */

struct list_type {
    struct slice version, kind;
    char text[KUBE_API_VERSION_BYTES];
};

static const struct kube_type *list_type(const struct kube_kind *kind, enum kube_shape shape,
                                         struct list_type *list)
{
    list->version = SLICE_LITERAL("meta.k8s.io/v1");
    list->kind = SLICE_LITERAL("PartialObjectMetadataList");
    if (shape == KUBE_WHOLE) {
        list->version = slice_from_text(kube_kind_api_version(kind, list->text));
        list->kind = slice_from_text(kind->list_kind);
    }
    return kube_type_find(list->version, list->kind);
}

enum status kube_format_list_field(const struct kube_kind *kind, enum kube_shape shape,
                                   const char *field, struct slice json, struct buf *to)
{
    struct list_type list;
    uint8_t first[4096];
    struct arena arena;
    struct json_node *root;
    struct error error;
    const struct kube_type *type = list_type(kind, shape, &list);
    const struct kube_field *found = type ? kube_type_field(type, slice_from_text(field)) : NULL;
    if (!found)
        return ST_NOT_FOUND;
    arena_init(&arena, first, sizeof(first), KUBE_CALL_ARENA_BYTES_MAX);
    enum status status = json_tree_read(&arena, json, &root, &error);
    if (status == ST_OK)
        status = kube_protobuf_encode_field(&arena, found, root, to, &error);
    arena_fini(&arena);
    return status;
}

enum status kube_format_list_head(const struct kube_kind *kind, enum kube_shape shape,
                                  size_t fields_bytes, struct buf *to)
{
    struct list_type list;
    return list_type(kind, shape, &list)
               ? kube_protobuf_encode_head(list.version, list.kind, fields_bytes, to)
               : ST_NOT_FOUND;
}

struct slice kube_format_list_tail(void)
{
    return kube_protobuf_tail();
}
