#include "kube/custom/conversion_review.h"

#include "codec/json/scanner.h"
#include "kube/types/go_text.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>

#define GROUP "apiextensions.k8s.io"

const char *conversion_failure_name(enum conversion_failure failure)
{
    static const char *const names[] = {
        [CONVERSION_FINE] = "",
        [CONVERSION_CALL_FAILED] = "conversion_webhook_call_failure",
        [CONVERSION_MALFORMED] = "conversion_webhook_malformed_response_failure",
        [CONVERSION_PARTIAL] = "conversion_webhook_partial_response_failure",
        [CONVERSION_INVALID_OBJECT] = "conversion_webhook_invalid_converted_object_failure",
    };
    _Static_assert(COUNT_OF(names) == CONVERSION_FAILURES, "each failure has a name");
    return names[failure];
}

enum status conversion_print_kind(struct slice api_version, struct slice kind, struct buf *to)
{
    bool grouped = api_version.len && memchr(api_version.ptr, '/', api_version.len);
    return buf_append_format(to, "%s%.*s, Kind=%.*s", grouped ? "" : "/", SLICE_ARGS(api_version),
                             SLICE_ARGS(kind));
}

const char *conversion_review_version(const struct json_node *versions)
{
    for (const struct json_node *item = json_node_items(versions); item; item = item->next) {
        if (json_node_is_text(item, "v1"))
            return "v1";
        if (json_node_is_text(item, "v1beta1"))
            return "v1beta1";
    }
    return NULL;
}

/* -- The question -- */

enum status conversion_review_begin(const struct conversion_review *review, struct buf *to)
{
    return buf_append_format(to,
                             "{\"kind\":\"ConversionReview\",\"apiVersion\":\"" GROUP
                             "/%s\",\"request\":{\"uid\":\"%.*s\",\"desiredAPIVersion\":\"%.*s\","
                             "\"objects\":[",
                             review->version, SLICE_ARGS(review->uid),
                             SLICE_ARGS(review->api_version));
}

enum status conversion_review_add(struct slice object, bool first, struct buf *to)
{
    if (!first)
        TRY(buf_append_text(to, ","));
    return buf_append(to, object);
}

enum status conversion_review_end(struct buf *to)
{
    /* Go writes the empty struct, too. */
    return buf_append_text(to, "]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,"
                               "\"result\":{\"metadata\":{}}}}");
}

/* -- The answer -- */

struct reading {
    struct arena *arena;
    const struct conversion_review *review;
    struct buf *why;
};

/* ST_INVALID, unless the text could not be written. */
#define FAIL(r, ...)                                           \
    (buf_append_text((r)->why, "failed: ") == ST_OK &&         \
             buf_append_format((r)->why, __VA_ARGS__) == ST_OK \
         ? ST_INVALID                                          \
         : ST_NOMEM)

/* A member of a Go struct: absent and null are the same. `place` is the struct and the path. */
static enum status find_member(struct reading *r, const struct json_node *object, const char *name,
                               enum json_type type, const char *place, const char *go_type,
                               const struct json_node **ret_member)
{
    const struct json_node *member = json_node_named(object, name);
    *ret_member = json_node_is_set(member) ? member : NULL;
    if (!*ret_member || member->type == type)
        return ST_OK;
    return FAIL(r, "json: cannot unmarshal %s into Go struct field %s of type %s",
                kube_json_type(member), place, go_type);
}

static enum status find_text(struct reading *r, const struct json_node *object, const char *name,
                             const char *place, const char *go_type, struct slice *ret_text)
{
    const struct json_node *member;
    TRY(find_member(r, object, name, JSON_TYPE_STRING, place, go_type, &member));
    return json_node_text(member, r->arena, ret_text);
}

/* Whether the answer is a review of this version. As in Kubernetes, one without a type is decoded
 * as such a review, and refused afterwards. */
static enum status check_type(struct reading *r, const struct json_node *root)
{
    AUTO(buf_fini) struct buf got = {0};
    const char *version = r->review->version;
    struct slice kind, api_version;
    char expected[64];
    TRY(find_text(r, root, "kind", "ConversionReview.kind", "string", &kind));
    TRY(find_text(r, root, "apiVersion", "ConversionReview.apiVersion", "string", &api_version));
    snprintf(expected, sizeof(expected), GROUP "/%s", version);
    if (api_version.len && kind.len && !slice_is(api_version, expected) &&
        slice_is(kind, "ConversionReview") &&
        (slice_is(api_version, GROUP "/v1") || slice_is(api_version, GROUP "/v1beta1"))) {
        const char *other = strcmp(version, "v1") == 0 ? "v1beta1" : "v1";
        return FAIL(r,
                    "converting (%s.ConversionReview) to (%s.ConversionReview): unknown "
                    "conversion",
                    other, version);
    }
    if ((api_version.len && !slice_is(api_version, expected)) ||
        (kind.len && !slice_is(kind, "ConversionReview"))) {
        if (!kind.len)
            kind = SLICE_LITERAL("ConversionReview");
        if (!api_version.len)
            api_version = slice_from_text(expected);
        return FAIL(r,
                    "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                    "\"pkg/runtime/scheme.go:111\"",
                    (int)size_min(kind.len, GO_SHOWN_BYTES_MAX), (const char *)kind.ptr,
                    (int)size_min(api_version.len, GO_SHOWN_BYTES_MAX),
                    (const char *)api_version.ptr);
    }
    if (strcmp(version, "v1") != 0 || (api_version.len && kind.len))
        return ST_OK;
    TRY(conversion_print_kind(api_version, kind, &got));
    return FAIL(r, "expected webhook response of %s, Kind=ConversionReview, got %.*s", expected,
                SLICE_ARGS(buf_slice(&got)));
}

static enum status check_uid(struct reading *r, const struct json_node *response)
{
    AUTO(buf_fini) struct buf shown = {0};
    struct slice uid;
    TRY(find_text(r, response, "uid", "ConversionResponse.response.uid", "types.UID", &uid));
    if (strcmp(r->review->version, "v1") != 0 || slice_equal(uid, r->review->uid))
        return ST_OK;
    uid.len = size_min(uid.len, GO_SHOWN_BYTES_MAX);
    TRY(go_quote(uid, &shown));
    return FAIL(r, "expected response.uid=\"%.*s\", got %.*s", SLICE_ARGS(r->review->uid),
                SLICE_ARGS(buf_slice(&shown)));
}

static enum status check_result(struct reading *r, const struct json_node *response)
{
    const struct json_node *result;
    struct slice status, message;
    TRY(find_member(r, response, "result", JSON_TYPE_OBJECT, "ConversionResponse.response.result",
                    "v1.Status", &result));
    TRY(find_text(r, result, "status", "Status.response.result.status", "string", &status));
    TRY(find_text(r, result, "message", "Status.response.result.message", "string", &message));
    if (slice_is(status, "Success"))
        return ST_OK;
    if (message.len)
        return FAIL(r, "%.*s", (int)size_min(message.len, GO_SHOWN_BYTES_MAX),
                    (const char *)message.ptr);
    return FAIL(r, "response.result.status was '%.*s', not 'Success'",
                (int)size_min(status.len, GO_SHOWN_BYTES_MAX), (const char *)status.ptr);
}

/* Go has another text for what ends early if it is not read from a stream. */
static const char *fault_of(struct slice answer, const struct error *error)
{
    struct json_scanner s;
    json_scanner_init(&s, answer);
    (void)!json_skip(&s, json_next(&s));
    return s.fault == JSON_EMPTY || s.fault == JSON_CUT_OFF ? "unexpected end of JSON input"
                                                            : error->text;
}

static enum status read_root(struct reading *r, struct slice answer, struct json_node **ret_root)
{
    struct error error = {0};
    enum status status = json_tree_read(r->arena, answer, ret_root, &error);
    if (status == ST_NOMEM)
        return status;
    if (status != ST_OK)
        return FAIL(r, "couldn't get version/kind; json parse error: %s", fault_of(answer, &error));
    if ((*ret_root)->type == JSON_TYPE_OBJECT)
        return ST_OK;
    return FAIL(r,
                "couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go "
                "value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; "
                "Kind string \"json:\\\"kind,omitempty\\\"\" }",
                kube_json_type(*ret_root));
}

static enum status read_objects(struct reading *r, struct slice answer,
                                struct json_node **ret_objects)
{
    const struct json_node *response, *objects;
    struct json_node *root;
    TRY(read_root(r, answer, &root));
    /* Go decodes everything before anything is checked. */
    TRY(find_member(r, root, "response", JSON_TYPE_OBJECT, "ConversionReview.response",
                    "v1.ConversionResponse", &response));
    TRY(find_member(r, response, "convertedObjects", JSON_TYPE_ARRAY,
                    "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension",
                    &objects));
    TRY(check_type(r, root));
    if (!response)
        return FAIL(r, "no response provided");
    TRY(check_uid(r, response));
    TRY(check_result(r, response));
    *ret_objects = json_node_path(root, "response.convertedObjects");
    return ST_OK;
}

enum status conversion_review_read(struct arena *arena, const struct conversion_review *review,
                                   struct slice answer, size_t count,
                                   struct json_node **ret_objects, struct buf *why,
                                   enum conversion_failure *ret_failure)
{
    struct reading r = {.arena = arena, .review = review, .why = why};
    struct json_node *objects = NULL;
    *ret_failure = CONVERSION_MALFORMED;
    TRY(read_objects(&r, answer, &objects));
    size_t got = json_node_is_set(objects) ? objects->count : 0;
    *ret_failure = CONVERSION_PARTIAL;
    if (got != count)
        return buf_append_format(why, "returned %zu objects, expected %zu", got, count) == ST_OK
                   ? ST_INVALID
                   : ST_NOMEM;
    *ret_failure = CONVERSION_FINE;
    *ret_objects = objects;
    return ST_OK;
}
