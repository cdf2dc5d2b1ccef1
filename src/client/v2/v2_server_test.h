/* For tests: a server of the v2 keys API that follows a script, on a loop of its own. */
#ifndef VIGIL_CLIENT_V2_V2_SERVER_TEST_H
#define VIGIL_CLIENT_V2_V2_SERVER_TEST_H

#include "base/buf.h"
#include "io/loop.h"
#include "simulated/sim.h"
#include "wire/http/http1/parser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANGES = 6, STATE_INDEX = 10, SCRIPT_MAX = 8 };

/* One response of a script. */
struct answer {
    const char *text; /* NULL: the model of a server answers, see answer_by_model */
    const char *body; /* NULL: the text is the whole response; otherwise it is its head */
    bool closes;      /* the connection is closed afterwards */
};

/* Serves one connection at a time, the latest. */
struct v2_server {
    struct loop *loop;
    struct listener listener;
    struct io_watch listener_watch, watch;
    struct socket socket;
    struct buf in, out;
    size_t sent_total, cut; /* after this many bytes in all the connection ends, once */
    bool breaks;            /* it is reset, not closed */
    struct answer script[SCRIPT_MAX];
    bool is_silent; /* after the script: nothing is answered any more */
    size_t answered;
    bool close_when_sent;
    unsigned accepted;
    char requests[SCRIPT_MAX * 4][300]; /* the heads of requests */
};

static inline void must(bool condition)
{
    if (!condition)
        abort();
}

static inline void server_close(struct v2_server *s)
{
    if (!s->socket.ops)
        return;
    loop_unwatch(s->loop, &s->watch);
    socket_close(&s->socket);
    s->in.len = s->out.len = 0;
    s->close_when_sent = false;
}

static inline void append_chunked(struct buf *out, const char *body)
{
    must(buf_append_format(out,
                           "HTTP/1.1 200 OK\r\nX-Etcd-Index: %d\r\nTransfer-Encoding: chunked\r\n"
                           "\r\n%zx\r\n%s\r\n0\r\n\r\n",
                           STATE_INDEX, strlen(body), body) == ST_OK);
}

/* A state at STATE_INDEX, and CHANGES changes after it. */
static inline void answer_by_model(struct v2_server *s, const char *request)
{
    char body[300];
    const char *at = strstr(request, "waitIndex=");
    int64_t index = at ? strtoll(at + 10, NULL, 10) : 0;
    if (!at)
        append_chunked(&s->out, "{\"action\":\"get\",\"node\":{\"key\":\"/a\",\"value\":\"0\","
                                "\"modifiedIndex\":5,\"createdIndex\":5}}");
    if (!at || index > STATE_INDEX + CHANGES)
        return;
    snprintf(body, sizeof(body),
             "{\"action\":\"set\",\"node\":{\"key\":\"/a\",\"value\":\"\\u0031\",\"modifiedIndex\":"
             "%" PRId64 ",\"createdIndex\":5}}",
             index);
    append_chunked(&s->out, body);
}

static inline void server_answer(struct v2_server *s, size_t head_len)
{
    size_t n = s->answered++;
    must(n < COUNT_OF(s->requests) && head_len < sizeof(s->requests[0]));
    memcpy(s->requests[n], s->in.ptr, head_len);
    s->requests[n][head_len] = '\0';
    buf_consume(&s->in, head_len);
    struct answer none = {0}, *answer = n < SCRIPT_MAX ? &s->script[n] : &none;
    if (answer->text)
        must(buf_append_text(&s->out, answer->text) == ST_OK);
    if (answer->body)
        must(buf_append_format(&s->out, "Content-Length: %zu\r\n\r\n%s", strlen(answer->body),
                               answer->body) == ST_OK);
    if (!answer->text && !s->is_silent)
        answer_by_model(s, s->requests[n]);
    s->close_when_sent = answer->closes;
}

static inline void server_read(struct v2_server *s, enum status *status)
{
    uint8_t bytes[4096];
    size_t n, from = 0, len;
    while ((*status = socket_read(&s->socket, bytes, sizeof(bytes), &n)) == ST_OK)
        must(buf_append(&s->in, slice_of(bytes, n)) == ST_OK);
    while ((len = http1_head_length(buf_slice(&s->in), &from))) {
        server_answer(s, len);
        from = 0;
    }
}

/* False: the connection is over. */
static inline bool server_write(struct v2_server *s)
{
    while (s->out.len) {
        size_t n, most = s->sent_total < s->cut ? s->cut - s->sent_total : SIZE_MAX;
        if (s->sent_total == s->cut)
            return false;
        struct slice bytes = slice_sub(buf_slice(&s->out), 0, size_min(s->out.len, most));
        enum status status = socket_write(&s->socket, bytes, &n);
        if (status != ST_OK)
            return status == ST_AGAIN;
        s->sent_total += n;
        buf_consume(&s->out, n);
    }
    return !s->close_when_sent && s->sent_total != s->cut;
}

static inline void server_step(struct v2_server *s)
{
    enum status status;
    server_read(s, &status);
    if (status == ST_AGAIN && server_write(s)) {
        unsigned events = IO_READ | (s->out.len ? IO_WRITE : 0u);
        must(loop_watch(s->loop, &s->watch, events) == ST_OK);
        return;
    }
    if (s->sent_total == s->cut) {
        s->cut = SIZE_MAX;
        if (s->breaks && s->socket.world)
            sim_reset(&s->socket);
    }
    server_close(s);
}

static inline void server_ready(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    server_step(CONTAINER_OF(watch, struct v2_server, watch));
}

static inline void server_accept(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct v2_server *s = CONTAINER_OF(watch, struct v2_server, listener_watch);
    server_close(s);
    if (listener_accept(&s->listener, &s->socket) != ST_OK)
        return;
    s->accepted++;
    s->watch = (struct io_watch){.handle = s->socket.handle, .fn = server_ready};
    server_step(s);
}

static inline void server_listen(struct v2_server *s, struct network *network, struct loop *loop)
{
    struct address address;
    struct error error;
    must(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address) == ST_OK);
    *s = (struct v2_server){.loop = loop, .cut = SIZE_MAX};
    must(network_listen(network, &address, &s->listener, &error) == ST_OK);
    s->listener_watch = (struct io_watch){.handle = s->listener.handle, .fn = server_accept};
    must(loop_watch(loop, &s->listener_watch, IO_READ) == ST_OK);
}

static inline void server_fini(struct v2_server *s)
{
    server_close(s);
    loop_unwatch(s->loop, &s->listener_watch);
    listener_close(&s->listener);
    buf_fini(&s->in);
    buf_fini(&s->out);
}

#endif
