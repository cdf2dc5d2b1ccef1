/* Reading the answer of a webhook: see review.h. */
#include "codec/go_quote.h"
#include "codec/json/string.h"
#include "codec/utf8.h"
#include "kube/policy/webhooks/go_fields.h"
#include "kube/policy/webhooks/review.h"
#include "kube/types/schema/go_value.h"
#include "yaml/yaml.h"

#define GROUP "admission.k8s.io"
#define REVIEW SLICE_LITERAL("AdmissionReview")
#define NOT_CALLED "failed to call webhook: "
#define INVALID "received invalid webhook response: "
#define NO_KIND NOT_CALLED "couldn't get version/kind; json parse error: "
#define NO_PATCH "received undecodable patch in webhook response: "

enum {
    /* Memory for the tree of a response. Reading is not interrupted, and other requests of the
     * thread wait for it. */
    TREE_BYTES_MAX = 12 << 20,
    SHOWN_BYTES_MAX = 1024, /* what an error shows of an answer, or of a text of it */
    NAME_BYTES_MAX = 64,    /* longer names of members are not those that are looked for */
};

static const char *const versions[] = {"v1", "v1beta1"};

struct reading {
    struct arena *arena; /* for temporary memory */
    struct slice answer; /* JSON */
    enum kube_webhook_version version;
    struct buf *error;
};

/* As apimachinery parses and prints them. */
struct version_kind {
    struct slice group, version, kind;
};

/* The members of the answer that count. */
struct outline {
    /* Compared without case, as for finding the type. */
    struct slice api_version, kind;
    /* Compared as they are. */
    struct slice own_api_version, own_kind;
    struct slice response; /* JSON; empty: none, or null */
};

static enum status append_quoted(struct slice text, struct buf *to)
{
    text.len = size_min(text.len, SHOWN_BYTES_MAX);
    TRY(buf_reserve(to, go_quote_room(text.len)));
    to->len += go_quoted(text, (char *)to->ptr + to->len);
    return ST_OK;
}

/* Returns ST_MALFORMED, or ST_NOMEM. */
static enum status refuse(const struct reading *r, const char *text)
{
    TRY(buf_append_text(r->error, text));
    return ST_MALFORMED;
}

/* -- The kind of the answer -- */

/* False: it has more than one slash. */
static bool split_version(struct slice api_version, struct version_kind *to)
{
    const uint8_t *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    *to = (struct version_kind){.version = api_version};
    if (!slash)
        return true;
    to->group = slice_cut(&api_version, '/');
    to->version = api_version;
    return !api_version.len || !memchr(api_version.ptr, '/', api_version.len);
}

static enum status append_version(const struct version_kind *of, struct buf *to)
{
    TRY(buf_append(to, of->group));
    TRY(buf_append_text(to, of->group.len ? "/" : ""));
    return buf_append(to, of->version);
}

static enum status no_such_kind(const struct reading *r, const struct version_kind *of)
{
    AUTO(buf_fini) struct buf version = {0};
    TRY(append_version(of, &version));
    TRY(buf_append_text(r->error, NOT_CALLED "no kind "));
    TRY(append_quoted(of->kind, r->error));
    TRY(buf_append_text(r->error, " is registered for version "));
    TRY(append_quoted(buf_slice(&version), r->error));
    return refuse(r, " in scheme \"pkg/runtime/scheme.go:111\"");
}

static enum status no_conversion(const struct reading *r, const char *package, struct slice kind)
{
    TRY(buf_append_format(r->error,
                          NOT_CALLED "converting (%s.%.*s) to (%s.AdmissionReview): unknown "
                                     "conversion",
                          package, SLICE_ARGS(kind), versions[r->version]));
    return ST_MALFORMED;
}

/* Kinds that client-go knows in every group, and in every one that it has a version of. */
static bool is_common_kind(const struct version_kind *of)
{
    static const char *const everywhere[] = {"Status", "APIVersions", "APIGroupList", "APIGroup",
                                             "APIResourceList"};
    static const char *const here[] = {"WatchEvent",    "ListOptions",   "GetOptions",
                                       "DeleteOptions", "CreateOptions", "UpdateOptions",
                                       "PatchOptions"};
    for (size_t i = 0; i < COUNT_OF(everywhere); i++)
        if (slice_is(of->kind, everywhere[i]))
            return true;
    bool known = slice_is(of->group, GROUP) &&
                 (slice_is(of->version, versions[0]) || slice_is(of->version, versions[1]));
    for (size_t i = 0; known && i < COUNT_OF(here); i++)
        if (slice_is(of->kind, here[i]))
            return true;
    return false;
}

/* What is missing is that of the review that was sent. */
static enum status check_kind(const struct reading *r, const struct outline *outline)
{
    struct version_kind of;
    struct slice wanted = slice_from_text(versions[r->version]);
    if (!split_version(outline->api_version, &of)) {
        struct slice shown = outline->api_version;
        shown.len = size_min(shown.len, SHOWN_BYTES_MAX);
        TRY(buf_append_text(r->error, NOT_CALLED "unexpected GroupVersion string: "));
        TRY(buf_append(r->error, shown));
        return ST_MALFORMED;
    }
    of.kind = outline->kind.len ? outline->kind : REVIEW;
    if (!of.group.len && !of.version.len)
        of.group = SLICE_LITERAL(GROUP);
    if (!of.version.len && slice_is(of.group, GROUP))
        of.version = wanted;
    if (!of.version.len) {
        struct slice shown = slice_sub(r->answer, 0, size_min(r->answer.len, SHOWN_BYTES_MAX));
        TRY(buf_append_text(r->error, NOT_CALLED "Object 'apiVersion' is missing in '"));
        TRY(buf_append(r->error, shown));
        return refuse(r, "'");
    }
    bool is_review = slice_is(of.group, GROUP) && slice_equal(of.kind, REVIEW);
    for (size_t i = 0; is_review && i < COUNT_OF(versions); i++)
        if (slice_is(of.version, versions[i]))
            return i == r->version ? ST_OK : no_conversion(r, versions[i], REVIEW);
    if (is_common_kind(&of))
        return no_conversion(r, "v1", of.kind);
    return no_such_kind(r, &of);
}

/* -- The outline -- */

static enum status append_fault(const struct reading *r, const struct json_scanner *s,
                                const char *what)
{
    char text[JSON_FAULT_TEXT_BYTES];
    TRY(buf_append_text(r->error, what));
    if (s->fault == JSON_TOO_DEEP)
        return refuse(r, "exceeded max depth");
    if (s->fault == JSON_EMPTY || s->fault == JSON_CUT_OFF)
        return refuse(r, "unexpected end of JSON input");
    return refuse(r, json_fault_text(s, text));
}

static const char *token_type(enum json_token token)
{
    switch (token) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_NUMBER:
        return "number";
    default:
        return "bool";
    }
}

static bool equal_fold(struct slice text, const char *name)
{
    if (text.len != strlen(name))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t a = text.ptr[i], b = (uint8_t)name[i];
        if (a != b && !((a ^ b) == 0x20 && (a | 0x20) >= 'a' && (a | 0x20) <= 'z'))
            return false;
    }
    return true;
}

/* A string for `name`, and in *own if the name is the same with its case. wrong: what Go says about
 * the first value of another type. */
static enum status take_text(const struct reading *r, const struct json_scanner *s,
                             enum json_token token, bool is_own, struct slice *text,
                             struct slice *own)
{
    if (token != JSON_STRING)
        return ST_OK; /* null changes nothing */
    uint8_t *room = s->escaped ? arena_alloc(r->arena, s->raw.len) : NULL;
    if (s->escaped && !room)
        return ST_NOMEM;
    if (json_string_get(s, room, text) != JSON_STRING_FINE)
        *text = SLICE_EMPTY;
    if (is_own)
        *own = *text;
    return ST_OK;
}

static enum status take_member(const struct reading *r, struct json_scanner *s, struct slice name,
                               struct outline *to, const char **wrong, enum json_token *wrong_type)
{
    enum json_token token = json_next(s);
    const uint8_t *begin = s->raw.ptr;
    static const char *const names[] = {"apiVersion", "kind"};
    struct slice *texts[] = {&to->api_version, &to->kind};
    struct slice *own[] = {&to->own_api_version, &to->own_kind};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!equal_fold(name, names[i]))
            continue;
        TRY(take_text(r, s, token, slice_is(name, names[i]), texts[i], own[i]));
        if (token != JSON_STRING && token != JSON_NULL && !*wrong) {
            *wrong = names[i];
            *wrong_type = token;
        }
    }
    if (!json_skip(s, token))
        return append_fault(r, s, NO_KIND);
    if (slice_is(name, "response"))
        to->response = token == JSON_NULL ? SLICE_EMPTY : slice_of(begin, (size_t)(s->at - begin));
    return ST_OK;
}

/* Reads the whole text and checks that it is JSON; what is not needed is skipped, such as the
 * request that many webhooks repeat. */
static enum status read_outline(const struct reading *r, struct outline *to)
{
    struct json_scanner s;
    const char *wrong = NULL;
    enum json_token wrong_type = JSON_NULL;
    json_scanner_init(&s, r->answer);
    enum json_token root = json_next(&s);
    while (root == JSON_OBJECT && json_next(&s) == JSON_KEY) {
        uint8_t room[NAME_BYTES_MAX];
        struct slice name = SLICE_EMPTY;
        if (s.raw.len <= sizeof(room) && json_string_get(&s, room, &name) != JSON_STRING_FINE)
            name = SLICE_EMPTY;
        TRY(take_member(r, &s, name, to, &wrong, &wrong_type));
    }
    bool fine = root == JSON_OBJECT ? s.fault == JSON_FINE : json_skip(&s, root);
    if (!fine || json_next(&s) != JSON_END)
        return append_fault(r, &s, NO_KIND);
    if (root != JSON_OBJECT && root != JSON_NULL) {
        TRY(buf_append_format(r->error,
                              NO_KIND "json: cannot unmarshal %s into Go value of type struct { "
                                      "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; "
                                      "Kind string \"json:\\\"kind,omitempty\\\"\" }",
                              token_type(root)));
        return ST_MALFORMED;
    }
    if (!wrong)
        return ST_OK;
    TRY(buf_append_format(
        r->error, NO_KIND "json: cannot unmarshal %s into Go struct field .%s of type string",
        token_type(wrong_type), wrong));
    return ST_MALFORMED;
}

/* -- The response -- */

static enum status wrong_response(const struct reading *r, const char *why)
{
    TRY(buf_append_text(r->error, NOT_CALLED));
    return refuse(r, why);
}

/* The value of the escape \\uXXXX at this place; -1: none is there. */
static int unit_at(struct slice text, size_t at)
{
    int unit = 0;
    if (text.len < 6 || at > text.len - 6 || text.ptr[at] != '\\' || text.ptr[at + 1] != 'u')
        return -1;
    for (size_t i = at + 2; i < at + 6; i++) {
        uint8_t c = text.ptr[i];
        unit = unit << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

/* As Go decodes texts: what is not UTF-8, and each half of a surrogate pair, becomes U+FFFD. The
 * text is JSON otherwise, so that its escapes are whole. */
static enum status repair(const struct reading *r, struct slice text, struct slice *ret_text)
{
    uint8_t *to = arena_alloc(r->arena, 3 * text.len), *end = to;
    if (!to)
        return ST_NOMEM;
    for (size_t at = 0, len; at < text.len; at += len) {
        struct slice rest = slice_sub(text, at, text.len - at);
        int unit = unit_at(text, at), low = unit >= 0 ? unit_at(text, at + 6) : -1;
        bool is_pair = unit >= 0xd800 && unit < 0xdc00 && low >= 0xdc00 && low < 0xe000;
        bool is_half = unit >= 0xd800 && unit < 0xe000 && !is_pair;
        size_t wide = utf8_char_len(rest);
        len = unit >= 0 ? (is_pair ? 12 : 6) : text.ptr[at] == '\\' ? 2 : size_max(wide, 1);
        struct slice piece = slice_sub(rest, 0, len);
        if (is_half)
            piece = SLICE_LITERAL("\\ufffd");
        else if (!wide)
            piece = SLICE_LITERAL("\xef\xbf\xbd");
        slice_copy(end, piece);
        end += piece.len;
    }
    *ret_text = slice_of(to, (size_t)(end - to));
    return ST_OK;
}

static enum status read_tree(const struct reading *r, struct slice text,
                             struct json_node **ret_tree, struct error *error)
{
    enum status status = json_tree_read(r->arena, text, ret_tree, error);
    if (status != ST_MALFORMED)
        return status;
    /* The outline has been read, so it can only be a text. What was read up to it is lost. */
    r->arena->limit_bytes = r->arena->held_bytes + TREE_BYTES_MAX + 5 * text.len;
    TRY(repair(r, text, &text));
    return json_tree_read(r->arena, text, ret_tree, error);
}

static enum status read_response(const struct reading *r, struct slice text,
                                 struct json_node **ret_response)
{
    struct error error = {0};
    enum status status = read_tree(r, text, ret_response, &error);
    if (status == ST_LIMIT)
        return wrong_response(r, "json: exceeded max depth");
    if (status == ST_MALFORMED)
        return wrong_response(r, error.text);
    TRY(status);
    if ((*ret_response)->type != JSON_TYPE_OBJECT) {
        TRY(buf_append_format(
            r->error,
            NOT_CALLED "json: cannot unmarshal %s into Go struct field AdmissionReview.response of "
                       "type %s.AdmissionResponse",
            kube_json_type(*ret_response), versions[r->version]));
        return ST_MALFORMED;
    }
    status = go_fields_check(&go_admission_response, *ret_response, "response", r->arena, &error);
    return status == ST_INVALID ? wrong_response(r, error.text) : status;
}

/* What only version v1 requires. */
static enum status check_v1(const struct reading *r, const struct outline *outline,
                            const struct json_node *response, struct slice uid)
{
    struct slice got;
    struct version_kind of;
    TRY(json_node_text(json_node_named(response, "uid"), r->arena, &got));
    if (!slice_equal(got, uid)) {
        TRY(buf_append_text(r->error, INVALID "expected response.uid="));
        TRY(append_quoted(uid, r->error));
        TRY(buf_append_text(r->error, ", got "));
        TRY(append_quoted(got, r->error));
        return ST_MALFORMED;
    }
    if (slice_is(outline->own_api_version, GROUP "/v1") && slice_equal(outline->own_kind, REVIEW))
        return ST_OK;
    (void)!split_version(outline->own_api_version, &of);
    TRY(buf_append_text(r->error, INVALID "expected webhook response of " GROUP
                                          "/v1, Kind=AdmissionReview, got "));
    TRY(buf_append(r->error, of.group));
    TRY(buf_append_text(r->error, "/"));
    TRY(buf_append(r->error, of.version));
    TRY(buf_append_text(r->error, ", Kind="));
    TRY(buf_append(r->error, outline->own_kind));
    return ST_MALFORMED;
}

static enum status check_patch(const struct reading *r, bool is_mutating, struct slice patch,
                               const struct json_node *type)
{
    bool has_type = json_node_is_set(type);
    if (!is_mutating && patch.len)
        return refuse(r, INVALID "validating webhook may not return response.patch");
    if (!is_mutating)
        return has_type ? refuse(r, INVALID "validating webhook may not return response.patchType")
                        : ST_OK;
    if (patch.len && !has_type)
        return refuse(r, INVALID "webhook returned response.patch but not response.patchType");
    if (!patch.len && has_type)
        return refuse(r, INVALID "webhook returned response.patchType but not response.patch");
    if (has_type && !type->text.len)
        return refuse(r, INVALID "webhook returned invalid response.patchType of \"\"");
    return ST_OK;
}

/* -- The verdict -- */

static enum status copy_text(const struct json_node *node, struct arena *arena, size_t most,
                             struct slice *ret_text)
{
    struct slice text;
    AUTO(arena_fini) struct arena decoded;
    arena_init(&decoded, NULL, 0, SIZE_MAX);
    TRY(json_node_text(node, &decoded, &text));
    text.len = size_min(text.len, most);
    return arena_dup(arena, text, ret_text);
}

static enum status take_warnings(const struct json_node *list, struct arena *arena,
                                 struct kube_webhook_verdict *to)
{
    size_t count = json_node_is_set(list) ? size_min(list->count, KUBE_WEBHOOK_WARNINGS_MAX) : 0;
    struct slice *texts = arena_alloc(arena, (count + 1) * sizeof(*texts));
    if (!texts)
        return ST_NOMEM;
    to->warnings = texts;
    for (const struct json_node *item = json_node_items(list);
         item && to->warning_count < KUBE_WEBHOOK_WARNINGS_MAX; item = item->next)
        if (json_node_has_text(item))
            TRY(copy_text(item, arena, KUBE_WEBHOOK_WARNING_BYTES_MAX,
                          &texts[to->warning_count++]));
    return ST_OK;
}

static enum status take_result(const struct json_node *result, struct arena *arena,
                               struct kube_webhook_verdict *to)
{
    AUTO(buf_fini) struct buf text = {0};
    if (to->allowed || !json_node_is_set(result))
        return ST_OK;
    TRY(json_tree_write(result, &text));
    return arena_dup(arena, buf_slice(&text), &to->result);
}

static enum status take_verdict(const struct reading *r, const struct json_node *response,
                                bool is_mutating, struct arena *arena,
                                struct kube_webhook_verdict *to)
{
    const struct json_node *type = json_node_named(response, "patchType");
    struct slice patch;
    TRY(go_fields_bytes(json_node_named(response, "patch"), r->arena, &patch));
    if (r->version == KUBE_REVIEW_V1)
        TRY(check_patch(r, is_mutating, patch, type));
    to->allowed = json_node_is_true(json_node_named(response, "allowed"));
    if (is_mutating && patch.len) {
        TRY(arena_dup(arena, patch, &to->patch));
        to->patch_type = SLICE_LITERAL("JSONPatch"); /* the only type in v1beta1 */
        if (r->version == KUBE_REVIEW_V1)
            TRY(copy_text(type, arena, SHOWN_BYTES_MAX, &to->patch_type));
    }
    TRY(take_warnings(json_node_named(response, "warnings"), arena, to));
    const struct json_node *annotations = json_node_named(response, "auditAnnotations");
    to->has_annotations = json_node_is_set(annotations) && annotations->count;
    return take_result(json_node_named(response, "status"), arena, to);
}

/* Whether the patch is a list of operations, which may be empty. What they say is checked when they
 * are applied. */
static enum status check_operations(const struct reading *r, struct kube_webhook_verdict *to)
{
    struct json_scanner s;
    enum json_token token, wrong = JSON_NULL;
    size_t count = 0;
    json_scanner_init(&s, to->patch);
    enum json_token root = json_next(&s);
    while (root == JSON_ARRAY && (token = json_next(&s)) != JSON_ARRAY_END && token != JSON_FAULT) {
        if (token != JSON_OBJECT && token != JSON_NULL && wrong == JSON_NULL)
            wrong = token;
        if (!json_skip(&s, token))
            break;
        count++;
    }
    bool fine = root == JSON_ARRAY ? s.fault == JSON_FINE : json_skip(&s, root);
    if (!fine || json_next(&s) != JSON_END)
        return append_fault(r, &s, NO_PATCH);
    bool is_list = root == JSON_ARRAY || root == JSON_NULL;
    if (!is_list || wrong != JSON_NULL) {
        TRY(buf_append_format(
            r->error, NO_PATCH "json: cannot unmarshal %s into Go value of type jsonpatch.%s",
            token_type(is_list ? wrong : root), is_list ? "Operation" : "Patch"));
        return ST_MALFORMED;
    }
    if (!count || slice_is(to->patch_type, "JSONPatch"))
        return ST_OK;
    TRY(buf_append_text(r->error, "unsupported patch type "));
    TRY(append_quoted(to->patch_type, r->error));
    return ST_MALFORMED;
}

/* As apimachinery tells it from YAML. */
static bool is_json(struct slice answer)
{
    for (size_t i = 0; i < answer.len; i++)
        if (answer.ptr[i] != ' ' && (answer.ptr[i] < '\t' || answer.ptr[i] > '\r'))
            return answer.ptr[i] == '{';
    return false;
}

static enum status read_yaml(const struct reading *r, struct buf *json)
{
    struct json_node *root;
    struct error error = {0};
    if (r->answer.len > KUBE_WEBHOOK_YAML_BYTES_MAX) {
        TRY(buf_append_format(r->error, NOT_CALLED "yaml: the answer is longer than %d bytes",
                              KUBE_WEBHOOK_YAML_BYTES_MAX));
        return ST_LIMIT;
    }
    enum status status = yaml_tree_read(r->arena, r->answer, &root, &error);
    if (status == ST_MALFORMED || status == ST_LIMIT)
        return wrong_response(r, error.text[0] ? error.text : "yaml: exceeded max depth");
    TRY(status);
    return json_tree_write(root, json);
}

static enum status read_answer(struct reading *r, struct slice uid, bool is_mutating,
                               struct arena *arena, struct kube_webhook_verdict *verdict)
{
    AUTO(buf_fini) struct buf json = {0};
    struct outline outline = {0};
    struct json_node *response;
    if (!is_json(r->answer)) {
        TRY(read_yaml(r, &json));
        r->answer = buf_slice(&json);
    }
    TRY(read_outline(r, &outline));
    TRY(check_kind(r, &outline));
    if (!outline.response.len)
        return refuse(r, INVALID "webhook response was absent");
    TRY(read_response(r, outline.response, &response));
    if (r->version == KUBE_REVIEW_V1)
        TRY(check_v1(r, &outline, response, uid));
    TRY(take_verdict(r, response, is_mutating, arena, verdict));
    return verdict->allowed && verdict->patch.len ? check_operations(r, verdict) : ST_OK;
}

enum status kube_webhook_verdict_read(struct arena *arena, struct slice answer,
                                      enum kube_webhook_version version, struct slice uid,
                                      bool is_mutating, struct kube_webhook_verdict *ret_verdict,
                                      struct buf *error)
{
    struct kube_webhook_verdict verdict = {0};
    struct arena trees;
    if (answer.len > KUBE_WEBHOOK_REVIEW_BYTES_MAX) {
        TRY(buf_append_format(error, NOT_CALLED "the answer is longer than %d bytes",
                              KUBE_WEBHOOK_REVIEW_BYTES_MAX));
        return ST_LIMIT;
    }
    /* Besides the tree: texts without their escapes, and the patch that is decoded. */
    size_t limit = TREE_BYTES_MAX + 2 * answer.len;
    arena_init(&trees, NULL, 0, limit);
    struct reading reading = {
        .arena = &trees, .answer = answer, .version = version, .error = error};
    enum status status = read_answer(&reading, uid, is_mutating, arena, &verdict);
    /* It is the answer that needs so much, unless the memory of the write has run out. */
    if (status == ST_NOMEM && arena_ran_out(&trees)) {
        error->len = 0;
        status = buf_append_text(error, NOT_CALLED "the answer takes too much memory");
        status = status == ST_OK ? ST_LIMIT : status;
    }
    arena_fini(&trees);
    if (status == ST_OK)
        *ret_verdict = verdict;
    return status;
}

/* -- Refusals -- */

static enum status make_message(struct slice webhook, struct slice message, struct slice reason,
                                struct buf *to)
{
    TRY(buf_append_text(to, "admission webhook "));
    TRY(append_quoted(webhook, to));
    TRY(buf_append_text(to, " denied the request"));
    if (!message.len && !reason.len)
        return buf_append_text(to, " without explanation");
    TRY(buf_append_text(to, ": "));
    return buf_append(to, message.len ? message : reason);
}

/* Go panics if it is to send another code. */
static unsigned http_code(int64_t code)
{
    return code <= 999 ? (unsigned)code : 500;
}

struct refusal {
    struct slice state, reason;
    struct buf message; /* owned */
    int64_t code;
    int64_t retry_after_s;
};

static enum status write_refusal(const struct refusal *refusal, const struct json_node *result,
                                 struct arena *arena, struct buf *to)
{
    struct json_writer w;
    const struct json_node *details = json_node_named(result, "details");
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_text(&w, "kind", "Status");
    json_member_text(&w, "apiVersion", "v1");
    json_key(&w, "metadata");
    go_fields_write(&go_status_metadata, json_node_named(result, "metadata"), arena, &w);
    json_member_string(&w, "status", refusal->state);
    json_member_string(&w, "message", buf_slice(&refusal->message));
    if (refusal->reason.len)
        json_member_string(&w, "reason", refusal->reason);
    if (json_node_is_set(details)) {
        json_key(&w, "details");
        go_fields_write(&go_status_details, details, arena, &w);
    }
    json_member_i64(&w, "code", refusal->code);
    json_end_object(&w);
    return json_writer_finish(&w);
}

static enum status make_refusal(struct refusal *refusal, struct slice webhook,
                                const struct json_node *result, struct arena *arena, struct buf *to)
{
    struct slice message;
    TRY(json_node_text(json_node_named(result, "message"), arena, &message));
    TRY(json_node_text(json_node_named(result, "reason"), arena, &refusal->reason));
    TRY(json_node_text(json_node_named(result, "status"), arena, &refusal->state));
    TRY(make_message(webhook, message, refusal->reason, &refusal->message));
    if (!refusal->state.len || slice_is(refusal->state, "Success"))
        refusal->state = SLICE_LITERAL("Failure");
    if (!json_node_int(json_node_named(result, "code"), &refusal->code) || refusal->code < 400)
        refusal->code = 400;
    if (!json_node_int(json_node_path(result, "details.retryAfterSeconds"),
                       &refusal->retry_after_s))
        refusal->retry_after_s = 0;
    return write_refusal(refusal, result, arena, to);
}

bool kube_webhook_refuse(struct arena *arena, struct slice webhook,
                         const struct kube_webhook_verdict *verdict, struct kube_status *status)
{
    AUTO(buf_fini) struct buf body = {0};
    struct refusal refusal = {0};
    struct json_node *result = NULL;
    struct error error;
    struct slice copy = SLICE_EMPTY, message = SLICE_EMPTY;
    assert(!verdict->allowed);
    enum status made = ST_OK;
    if (verdict->result.len)
        made = json_tree_read(arena, verdict->result, &result, &error);
    if (made == ST_OK)
        made = make_refusal(&refusal, webhook, result, arena, &body);
    if (made == ST_OK)
        made = arena_dup(arena, buf_slice(&body), &copy);
    if (made == ST_OK)
        made = arena_dup(arena, buf_slice(&refusal.message), &message);
    buf_fini(&refusal.message);
    if (made != ST_OK)
        return kube_fail_engine(status, made);
    (void)kube_fail(status, KUBE_UNKNOWN, "%s", "");
    status->code = http_code(refusal.code);
    status->long_message = message;
    status->whole = copy;
    if (refusal.retry_after_s > 0)
        status->retry_after_s = (unsigned)refusal.retry_after_s;
    return false;
}
