#include "kube/handlers/write/body.h"

#include "codec/json/field_fault.h"
#include "kube/call/call.h"
#include "kube/handlers/write/builtin_schema.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/request/field_faults.h"
#include "kube/types/object/meta.h"
#include "kube/types/schema/go_value.h"
#include "yaml/yaml.h"

#include <stdio.h>

#define NO_KIND "couldn't get version/kind; json parse error: "

#define UNKNOWN_FORMAT \
    "the body of the request was in an unknown format - accepted media types include: "

/* The body of a delete contains options, not an object of the kind. */
static bool has_options(const struct kube_call *call)
{
    return call->verb == KUBE_VERB_DELETE || call->verb == KUBE_VERB_DELETE_COLLECTION;
}

/* Without parameters: "application/json; charset=utf-8" is "application/json". */
static struct slice media_type(const struct http_request *request)
{
    struct slice type;
    if (!http_request_get(request, SLICE_LITERAL("content-type"), &type))
        return SLICE_EMPTY;
    const uint8_t *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    if (end)
        type.len = (size_t)(end - type.ptr);
    while (type.len && type.ptr[type.len - 1] == ' ')
        type.len--;
    return type;
}

/* The first bytes for an error message: as text if they begin an object, else in hex. */
static const char *summary(struct slice body, char to[80])
{
    enum { SHOWN = 30 };
    size_t len = size_min(body.len, SHOWN), at = 0;
    if (!body.len)
        return "<empty>";
    for (size_t i = 0; i < len && body.ptr[0] == '{'; i++)
        to[at++] = (char)body.ptr[i];
    for (size_t i = 0; i < len && body.ptr[0] != '{'; i++) {
        to[at++] = "0123456789abcdef"[body.ptr[i] >> 4];
        to[at++] = "0123456789abcdef"[body.ptr[i] & 15];
    }
    memcpy(to + at, body.len > SHOWN ? " ..." : "", body.len > SHOWN ? 5 : 1);
    return to;
}

static bool too_large(struct kube_call *call)
{
    return kube_fail(&call->status, KUBE_TOO_LARGE,
                     "Request entity too large: it has more values than a request may have");
}

/*
 * Limits the arena while a body is parsed. Parsing is not interrupted, and other requests of the
 * thread wait for it; bytes are a poor measure of its time, because three million of them can be
 * one string or a million numbers.
 */
static size_t narrow(struct arena *arena, size_t bytes)
{
    size_t before = arena->limit_bytes;
    arena->limit_bytes = size_min(before, arena->held_bytes + bytes);
    return before;
}

/* The error of Go's encoding/json, which has its own texts for the end and for depth. */
static const char *go_text(enum status status, const struct error *error)
{
    if (status == ST_LIMIT)
        return "exceeded max depth";
    bool ended = strcmp(error->text, "unexpected EOF") == 0 || strcmp(error->text, "EOF") == 0;
    return ended ? "unexpected end of JSON input" : error->text;
}

static bool unrecognized(struct kube_call *call, const char *type, const char *prefix,
                         const char *why, struct slice body)
{
    char shown[80];
    return kube_fail(&call->status, KUBE_BAD_REQUEST,
                     "the object provided is unrecognized (must be of type %s): %s%s (%s)", type,
                     prefix, why, summary(body, shown));
}

static bool unreadable(struct kube_call *call, const char *prefix, const char *why,
                       struct slice body)
{
    if (has_options(call))
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "%s%s", prefix, why);
    return unrecognized(call, call->kind->kind, prefix, why, body);
}

static bool no_object(struct kube_call *call, const struct json_node *root, struct slice body)
{
    char why[256];
    snprintf(why, sizeof(why),
             "json: cannot unmarshal %s into Go value of type struct { APIVersion string "
             "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
             "\"json:\\\"kind,omitempty\\\"\" }",
             kube_json_type(root));
    return unreadable(call, NO_KIND, why, body);
}

void kube_body_warn(struct kube_call *call, struct slice warnings)
{
    while (warnings.len)
        kube_call_warn(call, field_faults_take(&warnings));
}

/* Lines of yaml_tree_read_strict, each a warning. */
static void warn_of_lines(struct kube_call *call, struct slice lines)
{
    while (lines.len)
        kube_call_warn(call, slice_cut(&lines, '\n'));
}

/* yaml: unmarshal errors:, and each line indented below it. */
static enum status append_lines(struct slice lines, struct buf *to)
{
    TRY(buf_append_text(to, "yaml: unmarshal errors:"));
    while (lines.len) {
        TRY(buf_append_text(to, "\n  "));
        TRY(buf_append(to, slice_cut(&lines, '\n')));
    }
    return ST_OK;
}

/* Fails with a text that may be longer than a message. */
static bool fail_strict(struct kube_call *call, enum kube_reason reason, struct buf *text)
{
    struct slice copy;
    if (arena_dup(&call->arena, buf_slice(text), &copy) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    (void)kube_fail(&call->status, reason, "%s", "");
    call->status.long_message = copy;
    return false;
}

static enum status append_faults(const struct kube_call *call, struct slice lines,
                                 struct slice fields, bool patched, struct buf *to)
{
    if (patched)
        TRY(buf_append_text(to, " \"\" is invalid: patch: Invalid value: \"\": "));
    else
        TRY(buf_append_format(to, "%s in version \"%s\" cannot be handled as a %s: ",
                              call->kind->kind, call->kind->version, call->kind->kind));
    TRY(buf_append_text(to, "strict decoding error: "));
    if (lines.len)
        TRY(append_lines(lines, to));
    if (lines.len && fields.len)
        TRY(buf_append_text(to, ", "));
    return buf_append(to, fields);
}

/* Duplicate and unknown fields: an error with fieldValidation Strict, a warning with Warn, which is
 * the default. Lines: the duplicates of YAML. */
static bool report_fields(struct kube_call *call, struct slice lines, struct slice fields,
                          bool patched)
{
    struct slice mode = call->query.field_validation;
    AUTO(buf_fini) struct buf text = {0};
    if ((!lines.len && !fields.len) || slice_is(mode, "Ignore"))
        return true;
    if (slice_is(mode, "Strict")) {
        if (append_faults(call, lines, fields, patched, &text) != ST_OK)
            return kube_fail_engine(&call->status, ST_NOMEM);
        return fail_strict(call, patched ? KUBE_INVALID : KUBE_BAD_REQUEST, &text);
    }
    warn_of_lines(call, lines);
    kube_body_warn(call, fields);
    return true;
}

/* Removes fields that the type does not have and reports them with the duplicates found before; in
 * the order of the text, or by name where Kubernetes uses a map: YAML, and patched objects. */
static bool prune(struct kube_call *call, struct json_node *object, bool own, struct slice text,
                  struct slice lines, struct buf *found, bool patched)
{
    if (!(call->kind->flags & KUBE_CUSTOM) &&
        !kube_schema_prune(call->kind, own, object, found, &call->status)) {
        /* A patched object is invalid rather than unreadable. */
        if (patched && call->status.reason == KUBE_BAD_REQUEST)
            call->status.reason = KUBE_INVALID;
        return false;
    }
    if (!has_options(call) && !kube_custom_prune(call, object, found))
        return false;
    /* For Go's types all errors are in the order of the text; for custom resources duplicates come
     * first. */
    enum status status = ST_OK;
    if (found->len && !(call->kind->flags & KUBE_CUSTOM))
        status = text.len ? field_faults_sort(text, found) : field_faults_sort_by_name(found);
    if (status != ST_OK)
        return kube_fail_engine(&call->status, status);
    return report_fields(call, lines, buf_slice(found), patched);
}

bool kube_body_zero_status(struct kube_call *call, struct arena *arena, struct json_node *object)
{
    struct slice key = SLICE_LITERAL("status");
    struct json_node *zero;
    if (!(call->kind->flags & KUBE_HAS_STATUS) ||
        call->kind->flags & (KUBE_CUSTOM | KUBE_STORED_CONVERTED) || json_node_member(object, key))
        return true;
    enum status status = kube_schema_zero_status(arena, call->kind, &zero);
    if (status == ST_OK && zero)
        status = json_node_set(arena, object, key, zero);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

bool kube_body_prune_patched(struct kube_call *call, struct json_node *object, struct slice repeats)
{
    AUTO(buf_fini) struct buf found = {0};
    if (buf_append(&found, repeats) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return prune(call, object, false, SLICE_EMPTY, SLICE_EMPTY, &found, true);
}

/* A custom resource must name its kind. */
static bool has_kind(struct kube_call *call, struct json_node *object, bool own, struct slice body)
{
    char why[512];
    if (!own || !(call->kind->flags & KUBE_CUSTOM) ||
        json_node_has_text(json_node_named(object, "kind")))
        return true;
    snprintf(why, sizeof(why), "Object 'Kind' is missing in '%.*s'", (int)size_min(body.len, 400),
             (const char *)body.ptr);
    return unreadable(call, "", why, body);
}

static bool read_json(struct kube_call *call, struct slice body, bool own,
                      struct json_node **ret_body)
{
    struct error error = {0};
    struct buf repeats = {0};
    enum status status = json_tree_read_strict(&call->arena, body, ret_body, &repeats, &error);
    bool fine;
    if (status == ST_NOMEM)
        fine = too_large(call);
    else if (status != ST_OK)
        fine = unreadable(call, NO_KIND, go_text(status, &error), body);
    else if ((*ret_body)->type != JSON_TYPE_OBJECT)
        fine = no_object(call, *ret_body, body);
    else if (!has_kind(call, *ret_body, own, body))
        fine = false;
    else
        fine = prune(call, *ret_body, own, body, SLICE_EMPTY, &repeats, false);
    buf_fini(&repeats);
    return fine;
}

static bool read_yaml(struct kube_call *call, struct slice body, bool own,
                      struct json_node **ret_body)
{
    struct error error = {0};
    AUTO(buf_fini) struct buf repeats = {0};
    enum status status = yaml_tree_read_strict(&call->arena, body, ret_body, &repeats, &error);
    if (status == ST_NOMEM)
        return too_large(call);
    if (status != ST_OK)
        return unreadable(call, "", go_text(status, &error), body);
    if ((*ret_body)->type != JSON_TYPE_OBJECT)
        return no_object(call, *ret_body, body);
    AUTO(buf_fini) struct buf found = {0};
    struct slice lines = has_options(call) ? SLICE_EMPTY : buf_slice(&repeats);
    return prune(call, *ret_body, own, SLICE_EMPTY, lines, &found, false);
}

static bool read_body(struct kube_call *call, const struct http_request *request,
                      struct json_node **ret_body)
{
    struct slice type = media_type(request), body = request->body;
    /* The options of a delete and the bodies of subresources are of other kinds. */
    bool own = !slice_is(request->method, "DELETE") && !call->path.subresource.len;
    if (slice_is(type, "application/vnd.kubernetes.protobuf")) {
        /* Custom resources have no protobuf schema. */
        if (!(call->kind->flags & KUBE_CUSTOM))
            return kube_schema_read_protobuf(&call->arena, call->kind, body, ret_body,
                                             &call->status);
        return kube_fail(&call->status, KUBE_UNSUPPORTED_MEDIA_TYPE,
                         UNKNOWN_FORMAT "application/json, application/yaml");
    }
    if (!type.len || slice_is(type, "application/json"))
        return read_json(call, body, own, ret_body);
    if (slice_is(type, "application/yaml")) {
        narrow(&call->arena, KUBE_BODY_YAML_BYTES_MAX);
        return read_yaml(call, body, own, ret_body);
    }
    return kube_fail(&call->status, KUBE_UNSUPPORTED_MEDIA_TYPE,
                     UNKNOWN_FORMAT
                     "application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

bool kube_body_read(struct kube_call *call, const struct http_request *request,
                    struct json_node **ret_body)
{
    if (request->body.len > KUBE_BODY_BYTES_MAX)
        return kube_fail_too_long(&call->status, KUBE_BODY_BYTES_MAX);
    *ret_body = NULL;
    if (!request->body.len)
        return true;
    size_t before = narrow(&call->arena, KUBE_BODY_TREE_BYTES_MAX);
    bool fine = read_body(call, request, ret_body);
    call->arena.limit_bytes = before;
    return fine;
}

bool kube_body_read_object(struct kube_call *call, const struct http_request *request,
                           const char *type, struct json_node **ret_object)
{
    return kube_body_read(call, request, ret_object) &&
           (*ret_object ||
            unrecognized(call, type, NO_KIND, "unexpected end of JSON input", SLICE_EMPTY));
}

bool kube_body_set_posted(struct kube_call *call, struct json_node *body, const char *version,
                          const char *kind)
{
    const struct kube_meta meta = {.arena = &call->arena, .status = &call->status};
    struct json_node *metadata;
    return kube_meta_set_text(&meta, body, "kind", slice_from_text(kind)) &&
           kube_meta_set_text(&meta, body, "apiVersion", slice_from_text(version)) &&
           kube_meta_object(&meta, body, "metadata", &metadata) &&
           (json_node_has_text(json_node_named(metadata, "namespace")) ||
            kube_meta_set_text(&meta, metadata, "namespace", call->path.namespace));
}

static bool find_patch_type(struct slice type, enum kube_patch_type *ret_type)
{
    static const char *const types[] = {
        [KUBE_PATCH_JSON] = "application/json-patch+json",
        [KUBE_PATCH_MERGE] = "application/merge-patch+json",
        [KUBE_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [KUBE_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (slice_is(type, types[i])) {
            *ret_type = (enum kube_patch_type)i;
            return true;
        }
    }
    return false;
}

bool kube_body_report_config(struct kube_call *call, struct slice repeats)
{
    struct slice mode = call->query.field_validation;
    AUTO(buf_fini) struct buf text = {0};
    if (!repeats.len || slice_is(mode, "Ignore"))
        return true;
    if (!slice_is(mode, "Strict")) {
        warn_of_lines(call, repeats);
        return true;
    }
    if (buf_append_text(&text, "error strict decoding YAML: error converting YAML to JSON: ") !=
            ST_OK ||
        append_lines(repeats, &text) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return fail_strict(call, KUBE_BAD_REQUEST, &text);
}

/* YAML. Text that is also JSON is parsed as JSON, which takes a tenth of the time, unless it has
 * duplicate keys, whose lines are reported. */
static bool read_config(struct kube_call *call, struct slice body, struct json_node **ret_config,
                        struct slice *ret_repeats)
{
    struct error error = {0};
    AUTO(buf_fini) struct buf repeats = {0};
    enum status status = ST_MALFORMED;
    if (body.len && body.ptr[0] == '{')
        status = json_tree_read_strict(&call->arena, body, ret_config, &repeats, &error);
    if (status == ST_MALFORMED || repeats.len) {
        narrow(&call->arena, KUBE_BODY_YAML_BYTES_MAX);
        buf_reset(&repeats, SIZE_MAX);
        status = yaml_tree_read_strict(&call->arena, body, ret_config, &repeats, &error);
    }
    if (status == ST_OK)
        status = arena_dup(&call->arena, buf_slice(&repeats), ret_repeats);
    if (status == ST_NOMEM)
        return too_large(call);
    if (status != ST_OK)
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "error decoding YAML: error converting YAML to JSON: %s",
                         go_text(status, &error));
    if ((*ret_config)->type == JSON_TYPE_NULL) /* an empty document is an object without members */
        *ret_config = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    if (!*ret_config)
        return too_large(call);
    if ((*ret_config)->type == JSON_TYPE_OBJECT)
        return true;
    return kube_fail(&call->status, KUBE_BAD_REQUEST,
                     "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: "
                     "cannot unmarshal %s into Go value of type map[string]interface {}",
                     kube_json_type(*ret_config));
}

/* Appends the members of an operation that are unknown. */
static enum status append_unknown(const struct json_node *operation, size_t at, struct buf *faults)
{
    static const char *const known[] = {"op", "path", "from", "value"};
    const struct json_node *member = operation->type == JSON_TYPE_OBJECT ? operation->first : NULL;
    for (; member; member = member->next) {
        size_t i = 0;
        while (i < COUNT_OF(known) && !slice_is(member->key, known[i]))
            i++;
        if (i < COUNT_OF(known) || faults->len >= KUBE_UNKNOWN_OPTIONS_BYTES_MAX)
            continue;
        AUTO(buf_fini) struct buf path = {0};
        TRY(buf_append_format(&path, "[%zu].%.*s", at, SLICE_ARGS(member->key)));
        TRY(field_fault_append(faults, "unknown field", buf_slice(&path)));
    }
    return ST_OK;
}

/* Errors in the fields of a JSON patch are reported as its own, not as those of the object. */
static enum status check_operations(struct slice body, const struct json_node *patch,
                                    struct buf *faults)
{
    AUTO(buf_fini) struct buf found = *faults;
    const struct json_node *operation = patch->type == JSON_TYPE_ARRAY ? patch->first : NULL;
    *faults = (struct buf){0};
    for (size_t i = 0; operation; operation = operation->next, i++)
        TRY(append_unknown(operation, i, &found));
    if (found.len)
        TRY(field_faults_sort(body, &found));
    for (struct slice rest = buf_slice(&found); rest.len;) {
        TRY(buf_append_text(faults, faults->len ? ", json patch " : "json patch "));
        TRY(buf_append(faults, field_faults_take(&rest)));
    }
    return ST_OK;
}

/* Parses JSON and collects duplicate keys. */
static bool read_patch(struct kube_call *call, enum kube_patch_type type, struct slice body,
                       struct json_node **ret_patch, struct slice *ret_repeats)
{
    struct error error = {0};
    AUTO(buf_fini) struct buf repeats = {0};
    enum status status = json_tree_read_strict(&call->arena, body, ret_patch, &repeats, &error);
    if (status == ST_OK && type == KUBE_PATCH_JSON)
        status = check_operations(body, *ret_patch, &repeats);
    if (status == ST_OK)
        status = arena_dup(&call->arena, buf_slice(&repeats), ret_repeats);
    if (status == ST_OK)
        return true;
    if (status == ST_NOMEM)
        return too_large(call);
    return kube_fail(&call->status, KUBE_BAD_REQUEST, "error decoding patch: %s",
                     go_text(status, &error));
}

bool kube_body_read_patch(struct kube_call *call, const struct http_request *request,
                          enum kube_patch_type *ret_type, struct json_node **ret_patch,
                          struct slice *ret_repeats)
{
    *ret_repeats = SLICE_EMPTY;
    if (request->body.len > KUBE_BODY_BYTES_MAX)
        return kube_fail_too_long(&call->status, KUBE_BODY_BYTES_MAX);
    if (!find_patch_type(media_type(request), ret_type))
        return kube_fail_bare(&call->status, KUBE_UNSUPPORTED_MEDIA_TYPE,
                              "415: Unsupported Media Type");
    /* A strategic patch needs Go's types, which custom resources do not have. */
    if (*ret_type == KUBE_PATCH_STRATEGIC && call->kind->flags & KUBE_CUSTOM)
        return kube_fail(&call->status, KUBE_UNSUPPORTED_MEDIA_TYPE,
                         UNKNOWN_FORMAT "application/json-patch+json, "
                                        "application/merge-patch+json, "
                                        "application/apply-patch+yaml");
    size_t before = narrow(&call->arena, KUBE_BODY_TREE_BYTES_MAX);
    bool fine = *ret_type == KUBE_PATCH_APPLY
                    ? read_config(call, request->body, ret_patch, ret_repeats)
                    : read_patch(call, *ret_type, request->body, ret_patch, ret_repeats);
    call->arena.limit_bytes = before;
    return fine;
}
