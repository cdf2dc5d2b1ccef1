#include "kube/webhook/failure.h"

#include <stdio.h>

/* -- The parts of a reason -- */

/* What follows the prefix; false: the text does not begin with it. */
static bool skip(struct slice *text, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    if (!slice_has_prefix(*text, start))
        return false;
    *text = slice_sub(*text, start.len, text->len - start.len);
    return true;
}

/* What precedes the mark, which is removed, too. Empty: it is missing. */
static struct slice cut_at(struct slice *text, const char *mark)
{
    struct slice sign = slice_from_text(mark);
    const uint8_t *at = memmem(text->ptr, text->len, sign.ptr, sign.len);
    if (!at)
        return SLICE_EMPTY;
    size_t len = (size_t)(at - text->ptr);
    struct slice before = slice_sub(*text, 0, len);
    *text = slice_sub(*text, len + sign.len, text->len - len - sign.len);
    return before;
}

/* A reason of client/connect/connection.c or client/http/http_pool.c without what it says about the
 * server. Addresses contain no ": ". */
struct reason {
    bool connecting;
    struct slice address; /* valid while connecting; empty: unknown */
    struct slice text;
};

static struct reason split(struct slice text)
{
    struct reason r = {.text = text};
    if (skip(&r.text, "cannot connect to ")) {
        struct slice server = cut_at(&r.text, ": ");
        struct slice name = cut_at(&server, " (");
        r.connecting = true;
        r.address = server;
        if (name.len && server.len) /* "name:port (address:port)" */
            r.address.len--;
    } else if (skip(&r.text, "lost the connection to ") || skip(&r.text, "a request to ")) {
        (void)cut_at(&r.text, ": ");
    }
    return r;
}

/* -- Go's words -- */

/* Errors of connect(2), of which Go says where it happened. */
static bool is_of_connect(struct slice text)
{
    static const char *const texts[] = {
        "connection refused",      "no route to host", "network is unreachable",
        "connection timed out",    "host is down",     "permission denied",
        "operation not permitted", "invalid argument", "cannot assign requested address",
        "network is down",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (slice_is(text, texts[i]))
            return true;
    return false;
}

static struct slice translated(struct slice text, enum kube_webhook_stage stage)
{
    static const struct {
        const char *ours, *go;
    } rows[] = {
        {"TLS handshake timeout", "net/http: TLS handshake timeout"},
        {"tls: first record does not look like a TLS handshake",
         "http: server gave HTTP response to HTTPS client"},
        {"connection reset by peer", "read: connection reset by peer"},
        {"broken pipe", "write: broken pipe"},
    };
    if (slice_is(text, "the server closed the connection"))
        return stage == KUBE_WEBHOOK_READING ? SLICE_LITERAL("unexpected EOF")
                                             : SLICE_LITERAL("EOF");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (slice_is(text, rows[i].ours))
            return slice_from_text(rows[i].go);
    return text;
}

#define STREAM_ERROR "stream error: "

void kube_webhook_failure(struct buf *to, const struct kube_webhook_place *place,
                          enum kube_webhook_stage stage, struct slice reason)
{
    const struct kube_webhook_target *t = place->target;
    if (stage == KUBE_WEBHOOK_READING && slice_has_prefix(reason, SLICE_LITERAL(STREAM_ERROR)))
        (void)!buf_append_text(to,
                               "stream error when reading response body, may be caused by closed "
                               "connection. Please retry. Original error: ");
    else if (stage == KUBE_WEBHOOK_READING)
        (void)!buf_append_text(to, "unexpected error when reading response body. Please retry. "
                                   "Original error: ");
    else
        (void)!buf_append_format(
            to, "Post \"https://%.*s%.*s?timeout=%.*s\": ", SLICE_ARGS(t->authority),
            SLICE_ARGS(t->path), SLICE_ARGS(place->timeout));
    (void)!buf_append(to, reason);
}

void kube_webhook_failure_of_connection(struct buf *to, const struct kube_webhook_place *place,
                                        enum kube_webhook_stage stage, enum status status,
                                        const char *reason)
{
    struct reason r = split(slice_from_text(reason));
    const char *before = "", *between = "";
    struct slice address = SLICE_EMPTY;
    AUTO(buf_fini) struct buf text = {0};
    if (r.connecting && slice_has_prefix(r.text, SLICE_LITERAL("lookup "))) {
        before = "dial tcp: ";
    } else if (r.connecting && is_of_connect(r.text)) {
        before = "dial tcp ";
        address = r.address;
        between = ": connect: ";
    } else if (r.connecting && status == ST_TIMEOUT && slice_is(r.text, "i/o timeout")) {
        before = "dial tcp ";
        address = r.address;
        between = ": ";
    }
    struct slice words = translated(r.text, stage);
    if (skip(&words, "the server reset the stream ")) { /* "1: CANCEL" */
        struct slice id = cut_at(&words, ": ");
        (void)!buf_append_format(&text, STREAM_ERROR "stream ID %.*s; %.*s; received from peer",
                                 SLICE_ARGS(id), SLICE_ARGS(words));
        words = SLICE_EMPTY;
    }
    (void)!buf_append_format(&text, "%s%.*s%s%.*s", before, SLICE_ARGS(address), between,
                             SLICE_ARGS(words));
    kube_webhook_failure(to, place, stage, buf_slice(&text));
}

struct slice kube_webhook_seconds(int64_t seconds, char text[KUBE_WEBHOOK_SECONDS_BYTES])
{
    int64_t h = seconds / 3600, m = seconds / 60 % 60, s = seconds % 60;
    int len;
    if (h)
        len = snprintf(text, KUBE_WEBHOOK_SECONDS_BYTES, "%lldh%lldm%llds", (long long)h,
                       (long long)m, (long long)s);
    else if (m)
        len = snprintf(text, KUBE_WEBHOOK_SECONDS_BYTES, "%lldm%llds", (long long)m, (long long)s);
    else
        len = snprintf(text, KUBE_WEBHOOK_SECONDS_BYTES, "%llds", (long long)s);
    return slice_of(text, (size_t)len);
}
