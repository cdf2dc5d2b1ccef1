#include "load/conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SETTLE_TIMEOUT_MS = 30000,
    TABLE_NEEDED = 1024, /* what our request fields take in the server's header table, and spare */
    WINDOW_RETURN_AT = 1 << 30,
};

static enum status fail(struct bench_conn *conn, enum status status, const char *why)
{
    snprintf(conn->failure, sizeof(conn->failure), "%.150s", why);
    return status;
}

static bool skip(const char **text, const char *prefix)
{
    size_t len = strlen(prefix);
    bool there = strncmp(*text, prefix, len) == 0;
    *text += there ? len : 0;
    return there;
}

const char *bench_endpoint_name(const char *endpoint, bool *ret_secure)
{
    *ret_secure = skip(&endpoint, "https://");
    if (!*ret_secure)
        (void)skip(&endpoint, "http://");
    return endpoint;
}

enum status bench_address_resolve(const char *endpoint, struct sockaddr_storage *ret_address,
                                  struct error *error)
{
    bool unused;
    endpoint = bench_endpoint_name(endpoint, &unused);
    const char *colon = strrchr(endpoint, ':');
    char host[256];
    if (!colon || (size_t)(colon - endpoint) >= sizeof(host))
        return error_set(error, ST_INVALID, "endpoint %s: write it as host:port", endpoint);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - endpoint), endpoint);

    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed)
        return error_set(error, ST_INVALID, "endpoint %s: %s", endpoint, gai_strerror(failed));
    *ret_address = (struct sockaddr_storage){0};
    memcpy(ret_address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return ST_OK;
}

static enum status append_opening(struct buf *out)
{
    uint8_t settings[12] = {0, BENCH_SETTING_INITIAL_WINDOW_SIZE, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0};
    bench_u32_write(settings + 2, BENCH_WINDOW_MAX);
    TRY(buf_append(out, SLICE_LITERAL(BENCH_PREFACE)));
    TRY(bench_frame_append(out, BENCH_FRAME_SETTINGS, 0, 0, slice_of(settings, sizeof(settings))));
    return bench_frame_append_window(out, 0, BENCH_WINDOW_MAX - BENCH_WINDOW_DEFAULT);
}

/* The reason is the system's, so that a refused connection differs from a full table of files. */
static enum status fail_errno(struct bench_conn *conn, int error_number)
{
    const char *why = strerrordesc_np(error_number);
    snprintf(conn->failure, sizeof(conn->failure), "%.150s", why ? why : "unknown error");
    return status_from_errno(error_number);
}

static enum status connect_socket(struct bench_conn *conn, const struct sockaddr_storage *address)
{
    socklen_t len =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    conn->fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0)
        return fail_errno(conn, errno);
    if (connect(conn->fd, (const struct sockaddr *)address, len) < 0)
        return fail_errno(conn, errno);
    int on = 1;
    if (setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return fail_errno(conn, errno);
    return ST_OK;
}

static enum status settle(struct bench_conn *conn)
{
    AUTO(buf_fini) struct buf scratch = {0};
    TRY(buf_reserve(&scratch, BENCH_CONN_SCRATCH_BYTES));
    while (!conn->settled) {
        TRY(bench_conn_flush(conn));
        struct pollfd ready = {.fd = conn->fd, .events = POLLIN};
        if (poll(&ready, 1, SETTLE_TIMEOUT_MS) <= 0)
            return fail(conn, ST_IO, "no HTTP/2 settings within 30 s");
        TRY(bench_conn_read(conn, scratch.ptr));
    }
    return bench_conn_flush(conn);
}

static enum status allocate(struct bench_conn *conn, uint32_t in_flight_max)
{
    uint32_t size = 16;
    while (size < in_flight_max * 4)
        size *= 2;
    conn->ring = calloc(size, sizeof(*conn->ring));
    if (!conn->ring)
        return ST_NOMEM;
    conn->ring_mask = size - 1;
    return bench_header_decoder_new(conn->handler->plain, &conn->decoder);
}

static enum status secure(struct bench_conn *conn, struct bench_tls *tls)
{
    struct error why;
    if (!tls)
        return ST_OK;
    enum status status = bench_tls_dial(tls, conn->fd, &conn->ssl, &why);
    return status == ST_OK ? ST_OK : fail(conn, status, why.text);
}

enum status bench_conn_open(struct bench_conn *conn, const struct bench_address *address,
                            uint32_t in_flight_max, const struct bench_conn_handler *handler,
                            void *owner, struct error *error)
{
    assert(in_flight_max < 1u << 24);
    *conn = (struct bench_conn){
        .fd = -1,
        .handler = handler,
        .owner = owner,
        .send_window = BENCH_WINDOW_DEFAULT,
        .stream_window = BENCH_WINDOW_DEFAULT,
        .streams_max = in_flight_max,
        .next_stream = 1,
    };
    enum status status = allocate(conn, in_flight_max);
    if (status == ST_OK)
        status = connect_socket(conn, &address->socket);
    if (status == ST_OK)
        status = secure(conn, address->tls);
    if (status == ST_OK)
        status = append_opening(&conn->out);
    if (status == ST_OK)
        status = settle(conn);
    if (status != ST_OK) {
        error_set(error, status, "cannot open a connection: %s",
                  conn->failure[0] ? conn->failure : status_text(status));
        bench_conn_close(conn);
    }
    return status;
}

void bench_conn_close(struct bench_conn *conn)
{
    bench_tls_hang_up(conn->ssl);
    conn->ssl = NULL;
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    bench_header_decoder_free(TAKE(conn->decoder));
    free(TAKE(conn->ring));
    buf_fini(&conn->partial);
    buf_fini(&conn->out);
}

static struct bench_call *place_of(struct bench_conn *conn, uint32_t stream)
{
    return &conn->ring[stream >> 1 & conn->ring_mask];
}

struct bench_call *bench_conn_call(struct bench_conn *conn, uint32_t stream)
{
    struct bench_call *call = place_of(conn, stream);
    return stream && call->stream == stream ? call : NULL;
}

bool bench_conn_take_window(struct bench_conn *conn, struct bench_call *call, size_t bytes)
{
    if (conn->send_window < (int64_t)bytes || call->send_window < (int64_t)bytes)
        return false;
    conn->send_window -= (int64_t)bytes;
    call->send_window -= (int64_t)bytes;
    return true;
}

struct bench_call *bench_conn_begin(struct bench_conn *conn, size_t body_bytes, uint64_t now_ns)
{
    struct bench_call *call = place_of(conn, conn->next_stream);
    if (conn->in_flight >= conn->streams_max || conn->next_stream > BENCH_WINDOW_MAX ||
        call->stream)
        return NULL;
    *call = (struct bench_call){.start_ns = now_ns, .send_window = conn->stream_window};
    if (!bench_conn_take_window(conn, call, body_bytes))
        return NULL;
    call->stream = conn->next_stream;
    conn->next_stream += 2;
    conn->in_flight++;
    return call;
}

static void end_call(struct bench_conn *conn, struct bench_call *call,
                     const struct bench_verdict *error)
{
    conn->handler->on_end(conn, call, error);
    call->stream = 0;
    conn->in_flight--;
}

static enum status give_back(struct bench_conn *conn, uint32_t stream, uint64_t *unreturned)
{
    if (LIKELY(*unreturned < WINDOW_RETURN_AT))
        return ST_OK;
    uint32_t increment = (uint32_t)*unreturned;
    *unreturned = 0;
    return bench_frame_append_window(&conn->out, stream, increment);
}

static enum status on_data(struct bench_conn *conn, const struct bench_frame *frame)
{
    conn->unreturned += frame->payload.len;
    TRY(give_back(conn, 0, &conn->unreturned));
    struct bench_call *call = bench_conn_call(conn, frame->stream);
    if (!call)
        return ST_OK;
    call->data_bytes += frame->payload.len;
    call->unreturned += frame->payload.len;
    if (conn->handler->on_data && frame->payload.len)
        TRY(conn->handler->on_data(conn, call, frame->payload));
    if (frame->flags & BENCH_FRAME_END_STREAM) {
        const struct bench_verdict error = {
            .http_status = -1, .grpc_status = -1, .message = "the response ended without a status"};
        end_call(conn, call, conn->handler->plain ? NULL : &error);
        return ST_OK;
    }
    return give_back(conn, frame->stream, &call->unreturned);
}

static enum status on_headers(struct bench_conn *conn, const struct bench_frame *frame)
{
    if (!(frame->flags & BENCH_FRAME_END_HEADERS))
        return fail(conn, ST_UNIMPLEMENTED, "the server split a header block over frames");
    bool end = frame->flags & BENCH_FRAME_END_STREAM;
    bool good = false;
    struct bench_verdict verdict;
    if (bench_header_decode(conn->decoder, frame->payload, end, &good, &verdict) != ST_OK)
        return fail(conn, ST_MALFORMED, "a header block cannot be decoded");
    struct bench_call *call = bench_conn_call(conn, frame->stream);
    if (call && good && conn->handler->on_head)
        conn->handler->on_head(conn, call);
    if (call && (end || !good))
        end_call(conn, call, good ? NULL : &verdict);
    return ST_OK;
}

static enum status on_reset(struct bench_conn *conn, const struct bench_frame *frame)
{
    struct bench_call *call = bench_conn_call(conn, frame->stream);
    if (frame->payload.len != 4)
        return fail(conn, ST_MALFORMED, "a reset of a wrong size");
    if (!call)
        return ST_OK;
    struct bench_verdict error = {.http_status = -1, .grpc_status = -1};
    snprintf(error.message, sizeof(error.message), "stream reset, error %u",
             bench_u32_read(frame->payload.ptr));
    end_call(conn, call, &error);
    return ST_OK;
}

static enum status set_stream_window(struct bench_conn *conn, uint32_t window)
{
    if (window > BENCH_WINDOW_MAX)
        return fail(conn, ST_MALFORMED, "an initial window over 2^31-1");
    int64_t change = (int64_t)window - conn->stream_window;
    for (uint32_t i = 0; i <= conn->ring_mask; i++)
        conn->ring[i].send_window += change;
    conn->stream_window = window;
    return ST_OK;
}

static enum status on_settings(struct bench_conn *conn, const struct bench_frame *frame)
{
    if (frame->flags & BENCH_FRAME_ACK)
        return ST_OK;
    if (frame->payload.len % 6)
        return fail(conn, ST_MALFORMED, "settings of a wrong size");
    for (size_t at = 0; at < frame->payload.len; at += 6) {
        const uint8_t *setting = frame->payload.ptr + at;
        uint32_t value = bench_u32_read(setting + 2);
        unsigned id = (unsigned)setting[0] << 8 | setting[1];
        if (id == BENCH_SETTING_MAX_CONCURRENT_STREAMS && value < conn->streams_max)
            conn->streams_max = value;
        else if (id == BENCH_SETTING_INITIAL_WINDOW_SIZE)
            TRY(set_stream_window(conn, value));
        else if (id == BENCH_SETTING_HEADER_TABLE_SIZE && value < TABLE_NEEDED)
            return fail(conn, ST_UNIMPLEMENTED, "the server's header table is under 1024 bytes");
    }
    conn->settled = true;
    return bench_frame_append(&conn->out, BENCH_FRAME_SETTINGS, BENCH_FRAME_ACK, 0, SLICE_EMPTY);
}

static enum status on_window(struct bench_conn *conn, const struct bench_frame *frame)
{
    if (frame->payload.len != 4)
        return fail(conn, ST_MALFORMED, "a window update of a wrong size");
    uint32_t increment = bench_u32_read(frame->payload.ptr) & BENCH_WINDOW_MAX;
    struct bench_call *call = bench_conn_call(conn, frame->stream);
    if (frame->stream == 0)
        conn->send_window += increment;
    else if (call)
        call->send_window += increment;
    return ST_OK;
}

static enum status on_ping(struct bench_conn *conn, const struct bench_frame *frame)
{
    if (frame->payload.len != 8)
        return fail(conn, ST_MALFORMED, "a ping of a wrong size");
    if (frame->flags & BENCH_FRAME_ACK)
        return ST_OK;
    return bench_frame_append(&conn->out, BENCH_FRAME_PING, BENCH_FRAME_ACK, 0, frame->payload);
}

static enum status on_goaway(struct bench_conn *conn, const struct bench_frame *frame)
{
    struct slice text =
        frame->payload.len > 8 ? slice_sub(frame->payload, 8, frame->payload.len - 8) : SLICE_EMPTY;
    snprintf(conn->failure, sizeof(conn->failure), "the server said GOAWAY %.*s",
             (int)size_min(text.len, 100), text.len ? (const char *)text.ptr : "");
    return ST_CLOSED;
}

static enum status on_frame(struct bench_conn *conn, const struct bench_frame *frame)
{
    switch (frame->type) {
    case BENCH_FRAME_DATA:
        return on_data(conn, frame);
    case BENCH_FRAME_HEADERS:
        return on_headers(conn, frame);
    case BENCH_FRAME_RST_STREAM:
        return on_reset(conn, frame);
    case BENCH_FRAME_SETTINGS:
        return on_settings(conn, frame);
    case BENCH_FRAME_PING:
        return on_ping(conn, frame);
    case BENCH_FRAME_GOAWAY:
        return on_goaway(conn, frame);
    case BENCH_FRAME_WINDOW_UPDATE:
        return on_window(conn, frame);
    default:
        return ST_OK;
    }
}

static enum status take_input(struct bench_conn *conn, struct slice input)
{
    for (;;) {
        struct bench_frame frame;
        enum status status = bench_frame_next(&conn->reader, &input, &frame);
        if (status == ST_AGAIN)
            break;
        if (status != ST_OK)
            return fail(conn, status, "a frame that breaks the protocol");
        TRY(on_frame(conn, &frame));
    }
    conn->partial.len = 0;
    return buf_append(&conn->partial, input);
}

enum status bench_conn_read(struct bench_conn *conn, uint8_t *scratch)
{
    size_t kept = conn->partial.len;
    assert(kept <= BENCH_FRAME_HEAD_BYTES + BENCH_FRAME_PAYLOAD_MAX);
    slice_copy(scratch, buf_slice(&conn->partial));
    size_t room = BENCH_CONN_SCRATCH_BYTES - kept;
    ssize_t n = conn->ssl ? bench_tls_read(conn->ssl, scratch + kept, room)
                          : recv(conn->fd, scratch + kept, room, MSG_DONTWAIT);
    if (n == 0)
        return fail(conn, ST_CLOSED, "the server closed the connection");
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return ST_OK;
        return fail(conn, ST_IO, strerror(errno));
    }
    conn->bytes_in += (uint64_t)n;
    return take_input(conn, slice_of(scratch, kept + (size_t)n));
}

enum status bench_conn_flush(struct bench_conn *conn)
{
    conn->want_write = false;
    if (conn->out.len == 0)
        return ST_OK;
    const struct buf *out = &conn->out;
    ssize_t n = conn->ssl ? bench_tls_write(conn->ssl, out->ptr, out->len)
                          : send(conn->fd, out->ptr, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return fail(conn, ST_IO, strerror(errno));
        n = 0;
    }
    conn->bytes_out += (uint64_t)n;
    buf_consume(&conn->out, (size_t)n);
    conn->want_write = conn->out.len > 0;
    return ST_OK;
}
