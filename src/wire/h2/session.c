#include "wire/h2/session.h"

#include "wire/h2/session_private.h"

#include <stdlib.h>

/* The number of streams that a client opens before the server's SETTINGS have arrived; grpc-go
 * assumes the same. */
enum { PEER_STREAMS_ASSUMED = 100 };

#define TO(phase) (1u << H2_##phase)

/* Drawn in session_private.h. */
static const uint8_t phase_moves[] = {
    [H2_OPEN] = TO(DRAINING) | TO(LEAVING) | TO(FAILED),
    [H2_DRAINING] = TO(LEAVING) | TO(FAILED),
    [H2_LEAVING] = TO(FAILED),
    [H2_FAILED] = TO(FAILED), /* out of memory for the GOAWAY of a failure */
};

void h2_phase_move(struct h2_session *s, enum h2_phase next)
{
    assert(phase_moves[s->phase] & (1u << next));
    s->phase = next;
    if (next == H2_FAILED)
        s->exit_work |= H2_CLOSE_STREAMS;
}

/* The connection ends without a GOAWAY. */
static void session_die(struct h2_session *s, enum h2_error code, const char *reason)
{
    account_buf_fini(s->account, &s->control);
    h2_phase_move(s, H2_FAILED);
    s->error = code;
    s->reason = reason;
}

static void notify(struct h2_session *s)
{
    if (!s->inside && s->ops->on_output)
        s->ops->on_output(s->owner);
}

uint8_t *h2_control_put(struct h2_session *s, size_t len, enum h2_frame_type type, uint8_t flags,
                        uint32_t stream_id)
{
    size_t total = H2_FRAME_HEAD_BYTES + len;
    /* A peer that sends PING or SETTINGS and never reads would otherwise fill the memory with
     * answers (CVE-2019-9512 and 9515). A GOAWAY of the failure itself is still added. */
    if (s->control.len + total > s->limits->control_bytes_hard && s->phase != H2_FAILED) {
        h2_session_fail(s, H2_ENHANCE_YOUR_CALM, "too many control frames unread");
        return NULL;
    }
    if (account_reserve_anyway(s->account, &s->control, total) != ST_OK) {
        session_die(s, H2_INTERNAL_ERROR, "out of memory");
        return NULL;
    }
    uint8_t *payload = h2_frame_put(s->control.ptr + s->control.len, len, type, flags, stream_id);
    bool first = s->control.len == 0;
    s->control.len += total;
    if (first)
        notify(s);
    return payload;
}

void h2_reset_put(struct h2_session *s, uint32_t stream_id, enum h2_error code)
{
    uint8_t *payload = h2_control_put(s, 4, H2_RST_STREAM, 0, stream_id);
    if (payload)
        h2_put32(payload, code);
}

static void goaway_put(struct h2_session *s, uint32_t last_id, enum h2_error code,
                       struct slice debug)
{
    uint8_t *payload = h2_control_put(s, 8 + debug.len, H2_GOAWAY, 0, 0);
    if (payload)
        slice_copy(h2_put32(h2_put32(payload, last_id), code), debug);
}

void h2_stream_close(struct h2_stream *stream, enum h2_error code, bool by_us)
{
    struct h2_session *s = stream->session;
    h2_stream_unschedule(stream);
    h2_table_remove(&s->table, stream);
    list_remove(&stream->in_open);
    s->headers_bytes -= stream->headers_bytes;
    h2_streams_discharge(s);
    if (!stream->bulk)
        s->open_plain--;
    /* The rest of a DATA frame that is being read is skipped. */
    if (s->data_stream == stream)
        s->data_stream = NULL;
    /* What a late frame of this stream means depends on which side closed it. */
    s->closed[s->closed_next++ % H2_CLOSED_KEPT] = stream->id | (by_us ? H2_CLOSED_BY_US : 0);
    stream->session = NULL;
    stream->ops->on_close(stream, code);
}

void h2_stream_reset(struct h2_stream *stream, enum h2_error code)
{
    struct h2_session *s = stream->session;
    h2_session_enter(s);
    /* The server does not know the stream yet, and RST_STREAM for an idle stream is a connection
     * error (RFC 9113, section 6.4). */
    if (h2_is_client(s) && !stream->head_sent)
        stream->unprocessed = true;
    else
        h2_reset_put(s, stream->id, code);
    h2_stream_close(stream, code, true);
    h2_session_exit(s);
    notify(s);
}

/* Faults count like resets by the peer, because causing a reset is as cheap as sending one. */
void h2_stream_fault(struct h2_session *s, uint32_t stream_id, struct h2_stream *stream,
                     enum h2_error code)
{
    if (!rate_limit_take(&s->resets, s->limits->reset_burst, s->limits->reset_per_s, s->now_ns)) {
        h2_session_fail(s, H2_ENHANCE_YOUR_CALM, "too many streams reset");
        return;
    }
    h2_reset_put(s, stream_id, code);
    if (stream) {
        stream->ended_by = H2_ENDED_BY_FAULT;
        h2_stream_close(stream, code, true);
        return;
    }
    s->closed[s->closed_next++ % H2_CLOSED_KEPT] = stream_id | H2_CLOSED_BY_US;
}

static void close_streams(struct h2_session *s, enum h2_error code)
{
    while (!list_empty(&s->open)) {
        struct h2_stream *stream = LIST_ENTRY(s->open.next, struct h2_stream, in_open);
        stream->ended_by = H2_ENDED_WITH_SESSION;
        stream->unprocessed = !stream->head_sent;
        h2_stream_close(stream, code, false);
    }
}

void h2_session_enter(struct h2_session *s)
{
    s->inside++;
}

static __attribute__((noinline)) void exit_work(struct h2_session *s)
{
    /* Closing calls back into the owner, which may be in the middle of something. It is therefore
     * done at the end of the outermost call. */
    if (s->exit_work & H2_CLOSE_STREAMS) {
        close_streams(s, s->error);
    } else if (h2_client_has_room(s)) {
        s->exit_work = 0;
        if (s->ops->on_room)
            s->ops->on_room(s->owner);
    }
}

void h2_session_exit(struct h2_session *s)
{
    if (s->inside == 1 && s->exit_work)
        exit_work(s);
    s->inside--;
}

void h2_session_fail(struct h2_session *s, enum h2_error code, const char *reason)
{
    if (s->phase == H2_FAILED)
        return;
    h2_phase_move(s, H2_FAILED);
    s->error = code;
    s->reason = reason;
    h2_session_enter(s);
    /* The id is that of the last stream of the peer that was processed. A server opens none,
     * because push is disabled. */
    goaway_put(s, h2_is_client(s) ? 0 : s->last_id, code, slice_from_text(reason));
    h2_session_exit(s);
    notify(s);
}

void h2_session_lost(struct h2_session *s, const char *reason)
{
    h2_session_enter(s);
    /* The GOAWAY of an earlier failure cannot be delivered any more. */
    if (s->phase == H2_FAILED)
        account_buf_fini(s->account, &s->control);
    else
        session_die(s, H2_CANCEL, reason);
    h2_session_exit(s);
}

static void settings_put(struct h2_session *s)
{
    const struct h2_limits *l = s->limits;
    uint8_t *p = h2_control_put(s, 18, H2_SETTINGS, 0, 0);
    if (!p)
        return;
    const bool client = h2_is_client(s);
    /* A client only disables push. How many streams it accepts does not matter then. */
    const uint32_t rows[3][2] = {
        {client ? H2_SETTING_ENABLE_PUSH : H2_SETTING_MAX_CONCURRENT_STREAMS,
         client ? 0 : l->streams_max},
        {H2_SETTING_INITIAL_WINDOW_SIZE, l->stream_window},
        {H2_SETTING_MAX_HEADER_LIST_SIZE, l->header_list_bytes},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        *p++ = 0;
        *p++ = (uint8_t)rows[i][0];
        p = h2_put32(p, rows[i][1]);
    }
}

static void window_put(struct h2_session *s, uint32_t stream_id, uint32_t n)
{
    uint8_t *payload = h2_control_put(s, 4, H2_WINDOW_UPDATE, 0, stream_id);
    if (payload)
        h2_put32(payload, n);
}

static void preface_put(struct h2_session *s)
{
    struct slice preface = H2_PREFACE;
    if (account_reserve_anyway(s->account, &s->control, preface.len) != ST_OK) {
        session_die(s, H2_INTERNAL_ERROR, "out of memory");
        return;
    }
    slice_copy(s->control.ptr, preface);
    s->control.len = preface.len;
}

static enum status session_new(enum h2_role role, const struct h2_limits *limits,
                               const struct h2_session_ops *ops, void *owner,
                               struct account *account, int64_t now_ns,
                               struct h2_session **ret_session)
{
    assert(limits->stream_window <= H2_WINDOW_MAX && limits->connection_window <= H2_WINDOW_MAX);
    AUTO(h2_session_freep) struct h2_session *s = calloc(1, sizeof(*s));
    if (!s)
        return ST_NOMEM;
    *s = (struct h2_session){
        .limits = limits,
        .ops = ops,
        .owner = owner,
        .account = account,
        .reason = "",
        .now_ns = now_ns,
        .role = (uint8_t)role,
        .reading = role == H2_CLIENT ? H2_READ_HEAD : H2_READ_PREFACE,
        .last_id = role == H2_CLIENT ? H2_STREAM_ID_MAX : 0,
        .next_id = 1,
        .goaway_id = H2_STREAM_ID_MAX,
        .last_read_ns = now_ns,
        .last_ping_ns = INT64_MIN / 2,
        .peer_window = H2_WINDOW_DEFAULT,
        .peer_frame_bytes = H2_FRAME_BYTES_MAX,
        .peer_streams_max = PEER_STREAMS_ASSUMED,
        .peer_header_list_bytes = UINT32_MAX,
        .send_window = H2_WINDOW_DEFAULT,
        .send_window_peak = H2_WINDOW_DEFAULT,
        .recv_window = H2_WINDOW_DEFAULT,
        .drain_at_ns = INT64_MAX,
        .frame_by_ns = INT64_MAX,
    };
    hpack_decoder_init(&s->hpack);
    struct list *heads[] = {&s->open, &s->ready, &s->starved, &s->bulk_ready, &s->bulk_starved};
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        list_init(heads[i]);

    h2_session_enter(s);
    if (role == H2_CLIENT)
        preface_put(s);
    if (s->phase != H2_FAILED)
        settings_put(s);
    /* SETTINGS change only the windows of streams. That of the connection begins with 65,535 bytes
     * and grows by WINDOW_UPDATE alone (RFC 9113, section 6.9.2). */
    if (s->phase != H2_FAILED && limits->connection_window > H2_WINDOW_DEFAULT) {
        s->recv_window = (int32_t)limits->connection_window;
        window_put(s, 0, limits->connection_window - H2_WINDOW_DEFAULT);
    }
    h2_session_exit(s);
    if (s->phase == H2_FAILED)
        return ST_NOMEM;
    *ret_session = TAKE(s);
    return ST_OK;
}

enum status h2_session_new(const struct h2_limits *limits, const struct h2_session_ops *ops,
                           void *owner, struct account *account, int64_t now_ns,
                           struct h2_session **ret_session)
{
    return session_new(H2_SERVER, limits, ops, owner, account, now_ns, ret_session);
}

enum status h2_session_new_client(const struct h2_limits *limits, const struct h2_session_ops *ops,
                                  void *owner, struct account *account, int64_t now_ns,
                                  struct h2_session **ret_session)
{
    return session_new(H2_CLIENT, limits, ops, owner, account, now_ns, ret_session);
}

void h2_session_free(struct h2_session *s)
{
    if (!s)
        return;
    h2_session_enter(s);
    s->phase = H2_FAILED; /* on_close cannot open another stream */
    if (s->open.next)
        close_streams(s, H2_CANCEL);
    h2_table_fini(&s->table);
    hpack_decoder_fini(&s->hpack);
    account_buf_fini(s->account, &s->control);
    account_buf_fini(s->account, &s->partial);
    account_buf_fini(s->account, &s->block);
    account_release(s->account, s->streams_charged);
    free(s);
}

void h2_session_feed(struct h2_session *s, struct slice bytes, int64_t now_ns)
{
    s->now_ns = s->last_read_ns = now_ns;
    /* Any bytes prove that the peer is alive, not only the answer to the ping. */
    s->keepalive_sent_ns = 0;
    h2_session_enter(s);
    while (bytes.len && s->phase != H2_FAILED)
        bytes = h2_receive(s, bytes);
    h2_session_exit(s);
}

bool h2_session_wants_read(const struct h2_session *s)
{
    return s->phase != H2_FAILED && s->control.len <= s->limits->control_bytes_soft;
}

bool h2_session_over(const struct h2_session *s)
{
    /* The GOAWAY must be written before the connection is closed. */
    if (s->control.len)
        return false;
    return s->phase == H2_FAILED || (s->phase == H2_LEAVING && s->table.count == 0);
}

bool h2_session_failed(const struct h2_session *s)
{
    return s->phase == H2_FAILED;
}

enum h2_error h2_session_error(const struct h2_session *s, const char **ret_reason)
{
    *ret_reason = s->reason;
    return s->error;
}

/* The connection's window is given back when bytes are passed on; how many bytes a stream keeps is
 * up to its owner. */
void h2_session_credit(struct h2_session *s, size_t n)
{
    s->recv_owed += (uint32_t)n;
    uint32_t window = (uint32_t)size_max(s->limits->connection_window, H2_WINDOW_DEFAULT);
    /* Window is returned in halves, so that small DATA frames do not cause a WINDOW_UPDATE each. */
    if (s->recv_owed < window / 2 || s->withheld || s->phase == H2_FAILED)
        return;
    s->recv_window += (int32_t)s->recv_owed;
    window_put(s, 0, s->recv_owed);
    s->recv_owed = 0;
}

void h2_session_withhold(struct h2_session *s, bool withhold)
{
    if (s->withheld == withhold)
        return;
    s->withheld = withhold;
    h2_session_credit(s, 0);
}

void h2_stream_consumed(struct h2_stream *stream, size_t n)
{
    struct h2_session *s = stream->session;
    stream->recv_owed += (uint32_t)n;
    if (stream->remote_closed || stream->recv_owed < s->limits->stream_window / 2)
        return;
    int32_t target = (int32_t)s->limits->stream_window;
    uint32_t owed = stream->recv_owed;
    stream->recv_owed = 0;
    /* A window that h2_stream_expect widened shrinks again, because not all of it is given back. */
    if (stream->recv_window >= target)
        return;
    owed = (uint32_t)size_min(owed, (size_t)(target - stream->recv_window));
    stream->recv_window += (int32_t)owed;
    window_put(s, stream->id, owed);
}

void h2_stream_expect(struct h2_stream *stream, size_t n)
{
    int64_t missing = (int64_t)n - stream->recv_window;
    if (missing <= 0 || stream->remote_closed || n > H2_WINDOW_MAX / 2)
        return;
    stream->recv_window += (int32_t)missing;
    window_put(stream->session, stream->id, (uint32_t)missing);
}

void h2_session_shutdown(struct h2_session *s, int64_t now_ns)
{
    if (s->phase != H2_OPEN)
        return;
    s->now_ns = now_ns;
    s->reason = "shutting down";
    /* No stream of the server can be under way, so one GOAWAY suffices. */
    if (h2_is_client(s)) {
        h2_phase_move(s, H2_LEAVING);
        goaway_put(s, 0, H2_NO_ERROR, SLICE_EMPTY);
        return;
    }
    if (s->table.count == 0) {
        /* No answer is due. A stream that the client has opened meanwhile has a higher id than the
         * one in GOAWAY, so the client knows that it may be retried elsewhere. */
        h2_phase_move(s, H2_LEAVING);
        goaway_put(s, s->last_id, H2_NO_ERROR, SLICE_LITERAL("graceful_stop"));
        return;
    }
    h2_phase_move(s, H2_DRAINING);
    s->drain_at_ns = now_ns + s->limits->drain_ns;
    /* Streams that the client opens before it reads this GOAWAY are still answered. The answer to
     * the ping shows that it has read it. */
    goaway_put(s, H2_STREAM_ID_MAX, H2_NO_ERROR, SLICE_LITERAL("graceful_stop"));
    uint8_t *payload = h2_control_put(s, 8, H2_PING, 0, 0);
    if (payload)
        slice_copy(payload, H2_DRAIN_PING);
}

void h2_session_leave(struct h2_session *s)
{
    if (s->phase != H2_DRAINING)
        return;
    h2_phase_move(s, H2_LEAVING);
    s->drain_at_ns = INT64_MAX;
    goaway_put(s, s->last_id, H2_NO_ERROR, SLICE_EMPTY);
}

static bool keeps_alive(const struct h2_session *s)
{
    const struct h2_limits *l = s->limits;
    if (l->keepalive_ns <= 0)
        return false;
    /* A ping that was sent is still waited for when the last stream has ended. */
    return !l->keepalive_streams_only || s->table.count || s->keepalive_sent_ns;
}

int64_t h2_session_timeout(const struct h2_session *s)
{
    const struct h2_limits *l = s->limits;
    if (s->phase == H2_FAILED)
        return INT64_MAX;
    int64_t at = s->drain_at_ns < s->frame_by_ns ? s->drain_at_ns : s->frame_by_ns;
    if (keeps_alive(s)) {
        int64_t ask = s->keepalive_sent_ns ? s->keepalive_sent_ns + l->keepalive_timeout_ns
                                           : s->last_read_ns + l->keepalive_ns;
        at = ask < at ? ask : at;
    }
    return at;
}

static void keepalive(struct h2_session *s)
{
    const struct h2_limits *l = s->limits;
    if (!keeps_alive(s))
        return;
    if (s->keepalive_sent_ns) {
        if (s->now_ns - s->keepalive_sent_ns >= l->keepalive_timeout_ns) {
            s->timed_out = true;
            h2_session_fail(s, H2_NO_ERROR, "keepalive ping not acked");
        }
    } else if (s->now_ns - s->last_read_ns >= l->keepalive_ns) {
        uint8_t *payload = h2_control_put(s, 8, H2_PING, 0, 0);
        if (payload)
            slice_copy(payload, SLICE_LITERAL("vigilhi?"));
        s->keepalive_sent_ns = s->now_ns;
    }
}

void h2_session_tick(struct h2_session *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    h2_session_enter(s);
    if (s->phase == H2_DRAINING && now_ns >= s->drain_at_ns)
        h2_session_leave(s);
    if (s->phase != H2_FAILED && now_ns >= s->frame_by_ns)
        h2_session_fail(s, H2_ENHANCE_YOUR_CALM, "a frame or header block took too long to arrive");
    if (s->phase != H2_FAILED)
        keepalive(s);
    h2_session_exit(s);
}

bool h2_session_timed_out(const struct h2_session *s)
{
    return s->timed_out;
}

bool h2_session_established(const struct h2_session *s)
{
    return s->settings_seen;
}

int64_t h2_session_now(const struct h2_session *s)
{
    return s->now_ns;
}

uint32_t h2_session_peer_header_list_bytes(const struct h2_session *s)
{
    return s->peer_header_list_bytes;
}

uint32_t h2_session_peer_streams_max(const struct h2_session *s)
{
    return s->peer_streams_max;
}

size_t h2_session_streams(const struct h2_session *s)
{
    return s->table.count;
}

struct h2_stream *h2_session_next(struct h2_session *s, struct h2_stream *after)
{
    struct list *next = after ? after->in_open.next : s->open.next;
    return next == &s->open ? NULL : LIST_ENTRY(next, struct h2_stream, in_open);
}

static size_t check_list(const struct list *head, bool bulk, enum h2_stream_place place)
{
    size_t n = 0;
    const struct h2_stream *stream;
    LIST_FOREACH (stream, head, in_ready) {
        assert(stream->bulk == bulk);
        assert(stream->place == place);
        n++;
    }
    return n;
}

static void check_client_stream(const struct h2_session *s, const struct h2_stream *stream,
                                const struct h2_stream *before)
{
    assert(stream->id % 2 == 1 && stream->id < s->next_id && stream->id <= s->goaway_id);
    assert(!stream->bulk && !stream->remote_closed);
    assert(!before || before->id < stream->id);
    assert(!stream->head_sent || !before || before->head_sent); /* ids rise on the wire */
    assert(stream->head_sent || stream->place == H2_READY);
    assert(!stream->local_closed || stream->place == H2_NOWHERE);
    assert(stream->answered ? stream->recv_window >= 0 : stream->recv_window == -1);
}

void h2_session_check(const struct h2_session *s)
{
    size_t open = 0, plain = 0, placed = 0;
    const struct h2_stream *stream, *before = NULL;
    LIST_FOREACH (stream, &s->open, in_open) {
        assert(stream->session == s);
        assert(h2_table_find(&s->table, stream->id) == stream);
        assert(stream->id <= s->last_id);
        if (h2_is_client(s))
            check_client_stream(s, stream, before);
        before = stream;
        open++;
        plain += !stream->bulk;
        placed += stream->place == H2_READY || stream->place == H2_NO_SESSION_WINDOW;
    }
    assert(open == s->table.count);
    assert(plain == s->open_plain);
    size_t listed = check_list(&s->ready, false, H2_READY) +
                    check_list(&s->starved, false, H2_NO_SESSION_WINDOW) +
                    check_list(&s->bulk_ready, true, H2_READY) +
                    check_list(&s->bulk_starved, true, H2_NO_SESSION_WINDOW);
    assert(listed == placed);
    assert(s->recv_window >= 0);
}
