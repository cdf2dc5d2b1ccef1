#include "load/sink.h"

#include "load/frame.h"
#include "load/request.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    SCRATCH_BYTES = 256 * 1024,
    RESPONSE_BYTES_MAX = BENCH_FRAME_PAYLOAD_MAX - BENCH_GRPC_PREFIX_BYTES,
    ANSWER_FRAMES = 3,
    WINDOW_RETURN_AT = 1 << 30,
    PREFACE_BYTES = sizeof(BENCH_PREFACE) - 1,
};

/* Header blocks without state: indexed static fields and literals that enter no table. */
#define HEAD_BLOCK     \
    "\x88\x0f\x10\x10" \
    "application/grpc"
#define TRAILER_BLOCK \
    "\x00\x0b"        \
    "grpc-status\x01" \
    "0"
#define ERROR_BLOCK    \
    "\x88\x0f\x10\x10" \
    "application/grpc" \
    "\x00\x0b"         \
    "grpc-status\x02"  \
    "14"               \
    "\x00\x0c"         \
    "grpc-message\x0c" \
    "out of order"

struct peer {
    int fd;
    size_t preface_left;
    struct bench_frame_reader reader;
    struct buf partial;
    struct buf out;
    uint64_t unreturned;
    bool want_write;
    bool closing; /* once out is sent */
    struct peer *older;
};

struct bench_sink {
    struct bench_sink_config config;
    int listen_fd, epoll_fd, stop_fd;
    uint16_t port;
    uint64_t calls;
    struct buf answer; /* frames of one good answer, for stream 0 */
    size_t answer_frames_at[ANSWER_FRAMES];
    uint8_t *scratch;
    struct peer *peers; /* all there ever were; freed with the sink */
};

static enum status make_answer(struct bench_sink *sink)
{
    AUTO(buf_fini) struct buf message = {0};
    size_t bytes = BENCH_GRPC_PREFIX_BYTES + sink->config.response_bytes;
    TRY(buf_reserve(&message, bytes));
    memset(message.ptr, 0, bytes);
    bench_u32_write(message.ptr + 1, (uint32_t)sink->config.response_bytes);
    message.len = bytes;
    TRY(bench_frame_append(&sink->answer, BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS, 0,
                           SLICE_LITERAL(HEAD_BLOCK)));
    sink->answer_frames_at[1] = sink->answer.len;
    TRY(bench_frame_append(&sink->answer, BENCH_FRAME_DATA, 0, 0, buf_slice(&message)));
    sink->answer_frames_at[2] = sink->answer.len;
    return bench_frame_append(&sink->answer, BENCH_FRAME_HEADERS,
                              BENCH_FRAME_END_HEADERS | BENCH_FRAME_END_STREAM, 0,
                              SLICE_LITERAL(TRAILER_BLOCK));
}

static enum status answer_well(struct bench_sink *sink, struct peer *peer, uint32_t stream)
{
    TRY(buf_reserve(&peer->out, sink->answer.len));
    uint8_t *at = peer->out.ptr + peer->out.len;
    memcpy(at, sink->answer.ptr, sink->answer.len);
    for (size_t i = 0; i < ANSWER_FRAMES; i++)
        bench_u32_write(at + sink->answer_frames_at[i] + BENCH_FRAME_STREAM_AT, stream);
    peer->out.len += sink->answer.len;
    return ST_OK;
}

static enum status answer_badly(struct bench_sink *sink, struct peer *peer, uint32_t stream)
{
    const unsigned both = BENCH_FRAME_END_HEADERS | BENCH_FRAME_END_STREAM;
    static const uint8_t code[8] = {0, 0, 0, 0, 0, 0, 0, 7};
    switch (sink->config.fault) {
    case BENCH_SINK_ERROR_STATUS:
        return bench_frame_append(&peer->out, BENCH_FRAME_HEADERS, both, stream,
                                  SLICE_LITERAL(ERROR_BLOCK));
    case BENCH_SINK_RESET:
        return bench_frame_append(&peer->out, BENCH_FRAME_RST_STREAM, 0, stream,
                                  slice_of(code + 4, 4));
    case BENCH_SINK_EMPTY:
        TRY(bench_frame_append(&peer->out, BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS, stream,
                               SLICE_LITERAL(HEAD_BLOCK)));
        return bench_frame_append(&peer->out, BENCH_FRAME_HEADERS, both, stream,
                                  SLICE_LITERAL(TRAILER_BLOCK));
    case BENCH_SINK_GOAWAY:
        peer->closing = true;
        return bench_frame_append(&peer->out, BENCH_FRAME_GOAWAY, 0, 0, slice_of(code, 8));
    }
    return ST_OK;
}

static enum status on_frame(struct bench_sink *sink, struct peer *peer,
                            const struct bench_frame *frame)
{
    if (frame->type == BENCH_FRAME_SETTINGS && !(frame->flags & BENCH_FRAME_ACK))
        return bench_frame_append(&peer->out, BENCH_FRAME_SETTINGS, BENCH_FRAME_ACK, 0,
                                  SLICE_EMPTY);
    if (frame->type != BENCH_FRAME_DATA)
        return ST_OK;
    peer->unreturned += frame->payload.len;
    if (peer->unreturned >= WINDOW_RETURN_AT) {
        TRY(bench_frame_append_window(&peer->out, 0, (uint32_t)peer->unreturned));
        peer->unreturned = 0;
    }
    if (!(frame->flags & BENCH_FRAME_END_STREAM) || peer->closing)
        return ST_OK;
    sink->calls++;
    bool fault = sink->config.fault_every && sink->calls % sink->config.fault_every == 0;
    return fault ? answer_badly(sink, peer, frame->stream) : answer_well(sink, peer, frame->stream);
}

static enum status take_input(struct bench_sink *sink, struct peer *peer, struct slice input)
{
    size_t preface = size_min(peer->preface_left, input.len);
    peer->preface_left -= preface;
    input = slice_sub(input, preface, input.len - preface);
    struct bench_frame frame;
    enum status status;
    while ((status = bench_frame_next(&peer->reader, &input, &frame)) == ST_OK)
        TRY(on_frame(sink, peer, &frame));
    if (status != ST_AGAIN)
        return status;
    peer->partial.len = 0;
    return buf_append(&peer->partial, input);
}

static enum status receive(struct bench_sink *sink, struct peer *peer)
{
    size_t kept = peer->partial.len;
    slice_copy(sink->scratch, buf_slice(&peer->partial));
    ssize_t n = recv(peer->fd, sink->scratch + kept, SCRATCH_BYTES - kept, MSG_DONTWAIT);
    if (n == 0)
        return ST_CLOSED;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? ST_OK : ST_IO;
    return take_input(sink, peer, slice_of(sink->scratch, kept + (size_t)n));
}

static enum status watch_socket(struct bench_sink *sink, struct peer *peer, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    if (peer->want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(sink->epoll_fd, op, peer->fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status flush(struct bench_sink *sink, struct peer *peer)
{
    bool wanted = peer->want_write;
    if (peer->out.len) {
        ssize_t n = send(peer->fd, peer->out.ptr, peer->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return ST_IO;
        buf_consume(&peer->out, n > 0 ? (size_t)n : 0);
    }
    if (peer->closing && peer->out.len == 0)
        return ST_CLOSED;
    peer->want_write = peer->out.len > 0;
    return peer->want_write == wanted ? ST_OK : watch_socket(sink, peer, EPOLL_CTL_MOD);
}

static void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    buf_fini(&peer->partial);
    buf_fini(&peer->out);
}

static enum status peer_open(struct bench_sink *sink, struct peer *peer)
{
    uint8_t settings[6] = {0, BENCH_SETTING_INITIAL_WINDOW_SIZE};
    bench_u32_write(settings + 2, BENCH_WINDOW_MAX);
    int on = 1;
    if (setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return ST_IO;
    TRY(bench_frame_append(&peer->out, BENCH_FRAME_SETTINGS, 0, 0, slice_of(settings, 6)));
    TRY(bench_frame_append_window(&peer->out, 0, BENCH_WINDOW_MAX - BENCH_WINDOW_DEFAULT));
    TRY(watch_socket(sink, peer, EPOLL_CTL_ADD));
    return flush(sink, peer);
}

static void accept_one(struct bench_sink *sink)
{
    int fd = accept4(sink->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct peer *peer = calloc(1, sizeof(*peer));
    if (!peer) {
        close(fd);
        return;
    }
    *peer = (struct peer){.fd = fd, .preface_left = PREFACE_BYTES, .older = sink->peers};
    sink->peers = peer;
    if (peer_open(sink, peer) != ST_OK)
        peer_close(peer);
}

void *bench_sink_serve(void *argument)
{
    struct bench_sink *sink = argument;
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(sink->epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < n; i++) {
            struct peer *peer = events[i].data.ptr;
            if (events[i].data.ptr == &sink->stop_fd)
                return NULL;
            if (events[i].data.ptr == &sink->listen_fd)
                accept_one(sink);
            else if (receive(sink, peer) != ST_OK || flush(sink, peer) != ST_OK)
                peer_close(peer);
        }
    }
}

void bench_sink_stop(struct bench_sink *sink)
{
    eventfd_write(sink->stop_fd, 1);
}

static enum status watch_plain(const struct bench_sink *sink, const int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)fd};
    return epoll_ctl(sink->epoll_fd, EPOLL_CTL_ADD, *fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status sink_listen(struct bench_sink *sink)
{
    const struct sockaddr *address = (const struct sockaddr *)&sink->config.address;
    socklen_t len = sizeof(struct sockaddr_in);
    struct sockaddr_in bound;
    int on = 1;
    sink->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sink->stop_fd = eventfd(0, EFD_CLOEXEC);
    sink->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sink->epoll_fd < 0 || sink->stop_fd < 0 || sink->listen_fd < 0 ||
        setsockopt(sink->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(sink->listen_fd, address, len) < 0 || listen(sink->listen_fd, 1024) < 0 ||
        getsockname(sink->listen_fd, (struct sockaddr *)&bound, &len) < 0)
        return status_from_errno(errno);
    sink->port = ntohs(bound.sin_port);
    TRY(watch_plain(sink, &sink->listen_fd));
    return watch_plain(sink, &sink->stop_fd);
}

enum status bench_sink_new(const struct bench_sink_config *config, struct bench_sink **ret_sink,
                           struct error *error)
{
    if (config->address.ss_family != AF_INET || config->response_bytes > RESPONSE_BYTES_MAX)
        return error_set(error, ST_INVALID, "the sink listens on IPv4 and answers up to %d bytes",
                         RESPONSE_BYTES_MAX);
    struct bench_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return ST_NOMEM;
    sink->config = *config;
    sink->epoll_fd = sink->stop_fd = sink->listen_fd = -1;
    sink->scratch = malloc(SCRATCH_BYTES);
    enum status status = sink->scratch ? make_answer(sink) : ST_NOMEM;
    if (status == ST_OK)
        status = sink_listen(sink);
    if (status != ST_OK) {
        error_set(error, status, "the sink cannot listen: %s", status_text(status));
        bench_sink_free(sink);
        return status;
    }
    *ret_sink = sink;
    return ST_OK;
}

void bench_sink_free(struct bench_sink *sink)
{
    if (!sink)
        return;
    while (sink->peers) {
        struct peer *peer = sink->peers;
        sink->peers = peer->older;
        peer_close(peer);
        free(peer);
    }
    int fds[] = {sink->listen_fd, sink->epoll_fd, sink->stop_fd};
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    buf_fini(&sink->answer);
    free(sink->scratch);
    free(sink);
}

uint16_t bench_sink_port(const struct bench_sink *sink)
{
    return sink->port;
}
