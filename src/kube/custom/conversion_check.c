#include "kube/custom/conversion_check.h"

#include "kube/custom/conversion_review.h"
#include "kube/types/go_text.h"
#include "kube/types/object/meta.h"
#include "kube/types/object/name.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>

enum { SHOWN_BYTES_MAX = 1024 }; /* limit of a text in an error, since the webhook chooses it */

struct checking {
    struct arena *arena;
    const struct conversion_original *original;
    struct buf *why;
};

static struct slice shown(struct slice text)
{
    return slice_of(text.ptr, size_min(text.len, SHOWN_BYTES_MAX));
}

static enum status begin(struct checking *c)
{
    TRY(buf_append_text(c->why, "conversion webhook for "));
    TRY(conversion_print_kind(c->original->api_version, c->original->kind, c->why));
    return buf_append_text(c->why, " ");
}

/* ST_INVALID, unless the text could not be written. */
#define FAIL(c, ...) \
    (begin(c) == ST_OK && buf_append_format((c)->why, __VA_ARGS__) == ST_OK ? ST_INVALID : ST_NOMEM)

/* %T of what Go decodes JSON into. */
static const char *go_type(const struct json_node *node)
{
    switch ((enum json_type)node->type) {
    case JSON_TYPE_BOOL:
        return "bool";
    case JSON_TYPE_NUMBER:
        return go_is_float(node->text) ? "float64" : "int64";
    case JSON_TYPE_STRING:
        return "string";
    case JSON_TYPE_ARRAY:
        return "[]interface {}";
    case JSON_TYPE_OBJECT:
        return "map[string]interface {}";
    default:
        return "<nil>";
    }
}

/* -- Identity -- */

/* It is decoded as an object of its own, whose error has no words before it. */
static enum status check_object(struct checking *c, const struct json_node *object)
{
    AUTO(buf_fini) struct buf text = {0};
    if (object->type == JSON_TYPE_NULL) /* Go's RawExtension is empty then */
        return buf_append_text(c->why, "unexpected end of JSON input") == ST_OK ? ST_INVALID
                                                                                : ST_NOMEM;
    if (object->type != JSON_TYPE_OBJECT)
        return buf_append_format(c->why,
                                 "json: cannot unmarshal %s into Go value of type "
                                 "map[string]interface {}",
                                 kube_json_type(object)) == ST_OK
                   ? ST_INVALID
                   : ST_NOMEM;
    if (json_node_has_text(json_node_named(object, "kind")))
        return ST_OK;
    TRY(json_tree_write(object, &text));
    return buf_append_format(c->why, "Object 'Kind' is missing in '%.*s'",
                             SLICE_ARGS(shown(buf_slice(&text)))) == ST_OK
               ? ST_INVALID
               : ST_NOMEM;
}

static enum status check_version(struct checking *c, const struct json_node *object,
                                 struct slice api_version)
{
    struct slice version, kind;
    TRY(json_node_text(json_node_named(object, "apiVersion"), c->arena, &version));
    TRY(json_node_text(json_node_named(object, "kind"), c->arena, &kind));
    if (!slice_equal(version, api_version))
        return FAIL(c,
                    "returned invalid object at index 0: invalid groupVersion (expected %.*s, "
                    "received %.*s)",
                    SLICE_ARGS(api_version), SLICE_ARGS(shown(version)));
    if (!slice_equal(kind, c->original->kind))
        return FAIL(c,
                    "returned invalid object at index 0: invalid kind (expected %.*s, received "
                    "%.*s)",
                    SLICE_ARGS(c->original->kind), SLICE_ARGS(shown(kind)));
    return ST_OK;
}

static enum status check_same(struct checking *c, const struct json_node *metadata,
                              const char *name, const char *word)
{
    struct slice is, was;
    TRY(json_node_text(json_node_named(metadata, name), c->arena, &is));
    TRY(json_node_text(json_node_named(c->original->metadata, name), c->arena, &was));
    if (slice_equal(is, was))
        return ST_OK;
    return FAIL(c, "returned invalid object: must have the same %s: %.*s != %.*s", word,
                SLICE_ARGS(shown(was)), SLICE_ARGS(shown(is)));
}

/* -- Labels and annotations -- */

/* The errors of a field as Go joins them: `a`, or `[a, b]`. */
struct faults {
    struct buf text;
    size_t count;
};

static void faults_fini(struct faults *faults)
{
    buf_fini(&faults->text);
}

static enum status add_fault(struct faults *faults, const char *field, const char *what,
                             struct slice value, const char *before, const char *why)
{
    if (faults->count++)
        TRY(buf_append_text(&faults->text, ", "));
    TRY(buf_append_format(&faults->text, "%s: %s: ", field, what));
    if (value.ptr) {
        TRY(go_quote(shown(value), &faults->text));
        TRY(buf_append_text(&faults->text, ": "));
    }
    return buf_append_format(&faults->text, "%s%s", before, why);
}

static enum status add_reasons(struct faults *faults, const char *field, struct slice value,
                               const char *why)
{
    struct slice rest = slice_from_text(why);
    while (rest.len && faults->text.len < SHOWN_BYTES_MAX) {
        struct slice reason = name_cut_reason(&rest);
        char text[NAME_ERROR_BYTES];
        snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(reason));
        TRY(add_fault(faults, field, "Invalid value", value.ptr ? value : SLICE_LITERAL(""), "",
                      text));
    }
    return ST_OK;
}

static enum status check_labels(struct checking *c, const struct json_node *labels,
                                struct faults *faults)
{
    char why[NAME_ERROR_BYTES];
    for (const struct json_node *label = labels->first; label; label = label->next) {
        struct slice value;
        TRY(json_node_text(label, c->arena, &value));
        if (!label_key_valid(label->key, why))
            TRY(add_reasons(faults, "metadata.labels", label->key, why));
        if (!label_value_valid(value, why))
            TRY(add_reasons(faults, "metadata.labels", value, why));
    }
    return ST_OK;
}

/* Kubernetes names the field without its "s". */
static enum status check_annotations(struct checking *c, const struct json_node *annotations,
                                     struct faults *faults)
{
    char why[NAME_ERROR_BYTES], large[96];
    size_t bytes = 0;
    for (const struct json_node *one = annotations->first; one; one = one->next) {
        struct slice value, key = name_lower(c->arena, one->key);
        TRY(json_node_text(one, c->arena, &value));
        if (one->key.len && !key.ptr)
            return ST_NOMEM;
        bytes += one->key.len + value.len;
        if (!label_key_valid(key, why))
            TRY(add_reasons(faults, "metadata.annotation", one->key, why));
    }
    if (bytes <= KUBE_ANNOTATIONS_BYTES_MAX)
        return ST_OK;
    snprintf(large, sizeof(large), "may not be more than %d bytes", KUBE_ANNOTATIONS_BYTES_MAX);
    return add_fault(faults, "metadata.annotation", "Too long", SLICE_EMPTY, "", large);
}

static enum status check_texts(struct checking *c, const char *field, const struct json_node *map)
{
    for (const struct json_node *one = map->first; one; one = one->next)
        if (one->type != JSON_TYPE_STRING)
            return FAIL(c,
                        "returned invalid metadata: metadata.%s[%.*s] must be a string, but is %s "
                        "in converted object",
                        field, SLICE_ARGS(shown(one->key)), go_type(one));
    return ST_OK;
}

/* Takes the field over from the answer into the metadata that was restored. */
static enum status take_map(struct checking *c, struct json_node *answered,
                            struct json_node *restored, const char *field)
{
    AUTO(faults_fini) struct faults faults = {0};
    bool labels = strcmp(field, "labels") == 0;
    struct json_node *map = json_node_named(answered, field);
    struct json_node *had = json_node_named(restored, field);
    if (!json_node_is_set(map)) {
        if (had)
            json_node_remove(restored, had);
        return ST_OK;
    }
    if (map->type != JSON_TYPE_OBJECT)
        return FAIL(c,
                    "returned invalid metadata: invalid metadata.%s of type %s in converted object",
                    field, go_type(map));
    if (json_node_is_set(had) && had->type != JSON_TYPE_OBJECT)
        return FAIL(c,
                    "returned invalid metadata: invalid metadata.%s of type %s in original object",
                    field, go_type(had));
    TRY(check_texts(c, field, map));
    if (!had || !json_node_equal(had, map))
        TRY(labels ? check_labels(c, map, &faults) : check_annotations(c, map, &faults));
    if (faults.count)
        return FAIL(c, "returned invalid metadata: %s%.*s%s", faults.count > 1 ? "[" : "",
                    SLICE_ARGS(buf_slice(&faults.text)), faults.count > 1 ? "]" : "");
    json_node_remove(answered, map);
    return json_node_set(c->arena, restored, slice_from_text(field), map);
}

static enum status restore(struct checking *c, struct json_node *converted)
{
    struct json_node *answered = json_node_named(converted, "metadata"), *restored;
    const struct json_node *original = c->original->metadata;
    if (!answered)
        return FAIL(c, "returned invalid metadata: missing metadata in converted object");
    if (answered->type != JSON_TYPE_OBJECT)
        return FAIL(c, "returned invalid metadata: invalid metadata of type %s in converted object",
                    go_type(answered));
    if (original && original->type != JSON_TYPE_OBJECT)
        return FAIL(c, "returned invalid metadata: invalid metadata of type %s in input object",
                    go_type(original));
    restored =
        original ? json_node_copy(c->arena, original) : json_node_new(c->arena, JSON_TYPE_OBJECT);
    if (!restored)
        return ST_NOMEM;
    TRY(take_map(c, answered, restored, "labels"));
    TRY(take_map(c, answered, restored, "annotations"));
    return json_node_set(c->arena, converted, SLICE_LITERAL("metadata"), restored);
}

enum status conversion_check(struct arena *arena, const struct conversion_original *original,
                             struct slice api_version, struct json_node *converted, struct buf *why)
{
    struct checking c = {.arena = arena, .original = original, .why = why};
    TRY(check_object(&c, converted));
    TRY(check_version(&c, converted, api_version));
    const struct json_node *metadata = json_node_named(converted, "metadata");
    TRY(check_same(&c, metadata, "name", "name"));
    TRY(check_same(&c, metadata, "namespace", "namespace"));
    TRY(check_same(&c, metadata, "uid", "UID"));
    return restore(&c, converted);
}
