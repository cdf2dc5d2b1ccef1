#include "kube/webhook/answer.h"

#include "base/memory/budget.h"
#include "codec/json/tree.h"
#include "kube/types/go_text.h"
#include "zip/gunzip.h"

#include <stdio.h>

enum {
    UNPACK_STEP_BYTES = 256 * 1024, /* in one turn: about a millisecond */
    TEXT_BYTES_MAX = 2048,          /* what an error shows; client-go's limit */
    STATUS_BYTES_MAX = 16 * 1024,   /* longer answers are not read as a Status */
    STATUS_ARENA_BYTES_MAX = 1 << 20,
};

/* -- The head -- */

static void keep(struct slice value, char *text, size_t room)
{
    size_t len = size_min(value.len, room - 1);
    slice_copy(text, slice_sub(value, 0, len));
    text[len] = 0;
}

/* As strconv.Atoi. */
static bool read_seconds(struct slice text, int64_t *ret_seconds)
{
    uint64_t number;
    bool negative = text.len && text.ptr[0] == '-';
    if (text.len && (negative || text.ptr[0] == '+'))
        text = slice_sub(text, 1, text.len - 1);
    if (!slice_decimal(text, &number))
        return false;
    *ret_seconds = negative ? 0 : (int64_t)number;
    return true;
}

void kube_webhook_answer_head(struct kube_webhook_answer *a, unsigned code,
                              const struct http_field *fields, size_t count)
{
    bool repeatable = code == 429 || code >= 500;
    a->code = code;
    for (size_t i = 0; i < count; i++) {
        struct slice name = fields[i].name, value = fields[i].value;
        if (http_name_equal(name, SLICE_LITERAL("content-type")) && !*a->type)
            keep(value, a->type, sizeof(a->type));
        else if (http_name_equal(name, SLICE_LITERAL("content-encoding")))
            a->is_packed = http_name_equal(value, SLICE_LITERAL("gzip"));
        else if (http_name_equal(name, SLICE_LITERAL("location")))
            keep(value, a->place, sizeof(a->place));
        else if (http_name_equal(name, SLICE_LITERAL("retry-after")) && repeatable)
            a->may_repeat = read_seconds(value, &a->repeat_s);
    }
}

/* -- The body -- */

enum status kube_webhook_answer_add(struct kube_webhook_answer *a, struct slice bytes)
{
    struct buf *to = a->is_packed ? &a->packed : &a->body;
    if (bytes.len > KUBE_WEBHOOK_ANSWER_BYTES_MAX - to->len)
        return ST_LIMIT;
    return account_append(a->account, to, bytes);
}

enum status kube_webhook_answer_unpack(struct kube_webhook_answer *a, const char **ret_reason)
{
    if (!a->is_packed || !a->packed.len)
        return ST_OK;
    if (!a->gunzip)
        TRY(gunzip_stream_new(buf_slice(&a->packed), &a->gunzip, ret_reason));
    return gunzip_stream_step(a->gunzip, UNPACK_STEP_BYTES, KUBE_WEBHOOK_ANSWER_BYTES_MAX,
                              a->account, &a->body, ret_reason);
}

void kube_webhook_answer_reset(struct kube_webhook_answer *a)
{
    struct account *account = a->account;
    gunzip_stream_free(a->gunzip);
    account_buf_fini(account, &a->packed);
    account_buf_fini(account, &a->body);
    *a = (struct kube_webhook_answer){.account = account};
}

/* -- Errors -- */

/* An error of client-go for a code, by what it knows about it. */
static const struct {
    unsigned code;
    const char *text; /* NULL: that of the body */
} words[] = {
    {400, "the server rejected our request for an unknown reason"},
    {401, "the server has asked for the client to provide credentials"},
    {403, NULL},
    {404, "the server could not find the requested resource"},
    {405, "the server does not allow this method on the requested resource"},
    {406, NULL},
    {409, "the server reported a conflict"},
    {415, NULL},
    {422, "the server rejected our request due to an error in our request"},
    {429, "the server has received too many requests and has asked us to try again later"},
    {503, "the server is currently unable to handle the request"},
    {504, "the server was unable to return a response in the time allotted, but may still be "
          "processing the request"},
};

static bool is_text(const char *type)
{
    return !*type || strncasecmp(type, "text/", 5) == 0;
}

/* What the body says, if it is meant for people. */
static struct slice text_of(const struct kube_webhook_answer *a)
{
    struct slice body = buf_slice(&a->body);
    if (!is_text(a->type))
        return SLICE_LITERAL("unknown");
    return go_trim(slice_sub(body, 0, size_min(body.len, TEXT_BYTES_MAX)));
}

static enum status append_words(const struct kube_webhook_answer *a, struct buf *to)
{
    struct slice text = text_of(a);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (words[i].code == a->code && words[i].text)
            return buf_append_text(to, words[i].text);
        else if (words[i].code == 406 && a->code == 406 && (!text.len || slice_is(text, "unknown")))
            return buf_append_text(to, "the server was unable to respond with a content type that "
                                       "the client supports");
        else if (words[i].code == a->code)
            return buf_append(to, text);
    if (a->code < 500)
        return buf_append_format(to,
                                 "the server responded with the status code %u but did not return "
                                 "more information",
                                 a->code);
    TRY(buf_append_text(to, "an error on the server ("));
    TRY(go_quote(text, to));
    return buf_append_text(to, ") has prevented the request from succeeding");
}

/* The message of a Status that says that the request has failed, whatever the code. */
static bool append_status(const struct kube_webhook_answer *a, struct buf *to)
{
    struct arena arena;
    struct json_node *root;
    struct error error;
    struct slice message = SLICE_EMPTY;
    if (!a->body.len || a->body.len > STATUS_BYTES_MAX)
        return false;
    arena_init(&arena, NULL, 0, STATUS_ARENA_BYTES_MAX);
    bool failed = json_tree_read(&arena, buf_slice(&a->body), &root, &error) == ST_OK &&
                  json_node_text_is(root, "status", "Failure") &&
                  json_node_text_is(root, "kind", "Status") &&
                  json_node_text_is(root, "apiVersion", "v1") &&
                  json_node_text(json_node_named(root, "message"), &arena, &message) == ST_OK;
    if (failed)
        failed =
            buf_append(to, slice_sub(message, 0, size_min(message.len, TEXT_BYTES_MAX))) == ST_OK;
    arena_fini(&arena);
    return failed;
}

static bool is_redirect(const struct kube_webhook_answer *a)
{
    static const unsigned codes[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (a->code == codes[i] && *a->place)
            return true;
    return false;
}

bool kube_webhook_answer_fault(const struct kube_webhook_answer *a, struct buf *to)
{
    bool succeeded = a->code >= 200 && a->code <= 206;
    if (succeeded && a->body.len)
        return false;
    /* Without memory the text is shorter. */
    if (succeeded) {
        (void)!buf_append_format(to, "0-length response with status code: %u and content type: %s",
                                 a->code, *a->type ? a->type : "application/json");
    } else if (is_redirect(a)) {
        (void)!buf_append_format(to, "the server answered with the code %u and a redirect to ",
                                 a->code);
        (void)!go_quote(slice_from_text(a->place), to);
        (void)!buf_append_text(to, ", which is not followed");
    } else if (!append_status(a, to)) {
        (void)!append_words(a, to);
    }
    return true;
}
