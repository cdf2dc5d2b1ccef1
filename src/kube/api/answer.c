#include "kube/api/answer.h"

#include "codec/json/pretty.h"
#include "kube/api/call.h"
#include "kube/api/custom.h"
#include "kube/api/format.h"
#include "wire/http/gzip.h"

/* People who look by hand get it indented, unless they say otherwise. */
static bool wants_pretty(const struct kube_call *call)
{
    static const char *const people[] = {"curl", "Wget", "Mozilla/5.0"};
    struct slice agent = SLICE_EMPTY;
    if (call->accept.pretty)
        return true;
    if (call->query.pretty_given)
        return call->query.pretty;
    (void)http_request_get(call->request, SLICE_LITERAL("user-agent"), &agent);
    for (size_t i = 0; i < COUNT_OF(people); i++) {
        struct slice name = slice_from_text(people[i]);
        if (agent.len >= name.len && slice_equal(slice_sub(agent, 0, name.len), name))
            return true;
    }
    return false;
}

/* The body is worth the work of packing it, as in Kubernetes. */
enum { GZIP_BYTES_MIN = 128 * 1024 };

/* In the format that was asked for; what cannot be said in it is said in JSON. */
static enum status make_body(struct kube_call *call, struct slice json, enum kube_format *format,
                             struct buf *to)
{
    *format = call->accept.format;
    enum status status = ST_NOT_FOUND;
    if (*format != KUBE_JSON)
        status = kube_format_write(*format, json, to);
    if (status == ST_OK || status == ST_NOMEM)
        return status;
    *format = KUBE_JSON;
    to->len = 0;
    status = wants_pretty(call) ? json_pretty(json, to) : ST_LIMIT;
    if (status != ST_LIMIT)
        return status;
    buf_reset(to, 0);
    return buf_append(to, json);
}

static enum status pack(struct kube_answer *answer)
{
    AUTO(buf_fini) struct buf packed = {0};
    TRY(http_gzip(answer->body, &packed));
    buf_fini(&answer->made);
    answer->made = packed;
    packed = (struct buf){0};
    answer->body = buf_slice(&answer->made);
    answer->packed = true;
    return ST_OK;
}

enum status kube_answer_make(struct kube_call *call, struct slice json, struct kube_answer *answer)
{
    answer->body = json;
    if (call->accept.format != KUBE_JSON || wants_pretty(call)) {
        TRY(make_body(call, json, &answer->format, &answer->made));
        answer->body = buf_slice(&answer->made);
    }
    if (answer->body.len > GZIP_BYTES_MIN && http_accepts_gzip(call->request))
        return pack(answer);
    return ST_OK;
}

size_t kube_call_format_work(const struct kube_call *call, size_t bytes)
{
    bool plain = call->accept.format == KUBE_JSON && !wants_pretty(call) &&
                 (bytes <= GZIP_BYTES_MIN || !http_accepts_gzip(call->request));
    return plain ? 0 : bytes;
}

size_t kube_call_answer_work(const struct kube_call *call, size_t bytes, int64_t revision)
{
    bool plain = bytes <= KUBE_WORK_BYTES_MAX ||
                 (call->accept.shape == KUBE_WHOLE && kube_custom_is_plain(call->kind, revision) &&
                  !kube_call_format_work(call, bytes));
    return plain ? 0 : bytes;
}
