/*
 * For tests: a client's view of a simulated network on which one thing goes wrong. Servers use the
 * simulated network directly and are not affected, nor is the memory of the simulation.
 *
 * The linker redirects loop_turn, loop_watch and random_seed_system to this file
 * (src/client/layer.cmake). One file of a program includes it.
 */
#ifndef VIGIL_CLIENT_SIM_FAULTY_SIM_TEST_H
#define VIGIL_CLIENT_SIM_FAULTY_SIM_TEST_H

#include "base/buf.h"
#include "base/failing_memory_test.h"
#include "io/loop.h"
#include "simulated/sim.h"
#include "wire/h2/frame.h"

#include <errno.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_LOST_READING, /* after this many received bytes the connection is lost */
    FAULT_LOST_WRITING, /* after this many sent bytes, which the server still receives */
    FAULT_RESET,        /* as FAULT_LOST_READING, and bytes in flight are lost as well */
    FAULT_END,          /* after this many bytes the server has sent its last one */
    FAULT_GARBAGE,      /* received bytes are wrong from there on */
    FAULT_SILENCE,      /* nothing is transferred any more, and no error is reported */
    FAULT_CALL,         /* the nth system call fails */
    FAULT_DELAY,        /* nothing fails, but everything takes time (see sim_options) */
    FAULT_EVERY,        /* every connection is lost after this many received bytes */
};

enum { GARBAGE_BYTES = 24, FAULTY_HANDLES_MAX = 4096 };

static struct faults {
    struct network network; /* for the client */
    struct network *real;
    struct loop *loop;   /* the client's; NULL: it has none yet */
    void (*check)(void); /* called after its turns */
    enum fault_kind kind;
    size_t at;
    bool happened;
    int dead; /* the handle of the connection that is lost; -1: none */
    size_t bytes_read, bytes_written, calls, turns, connects;
    /* Unless NULL: replaces a frame of the server by others. */
    void (*rewrite)(struct h2_frame frame, struct slice payload, struct buf *out);
    int rewriting;                           /* the handle of its connection */
    size_t rewritten;                        /* frames that were changed */
    struct buf received[FAULTY_HANDLES_MAX]; /* frames that are not complete, by handle */
} faults = {.dead = -1};

/* The places of a run at which this fault may happen: bytes, or system calls. */
static inline size_t fault_places(enum fault_kind kind, const struct faults *totals)
{
    if (kind == FAULT_CALL)
        return totals->calls + 1;
    return kind == FAULT_LOST_WRITING ? totals->bytes_written : totals->bytes_read;
}

static const struct socket_ops *faulty_real_ops;

/* -- Memory fails only in the client -- */

/* As memory_fail_at, for allocations in the client's turns and between these two. */
static size_t faulty_memory_at;

static inline void faulty_memory_begin(void)
{
    memory_fail_at = faulty_memory_at;
}

static inline void faulty_memory_end(void)
{
    faulty_memory_at = memory_fail_at;
    memory_fail_at = 0;
}

void __real_loop_turn(struct loop *loop, int64_t wait_max_ns);
void __wrap_loop_turn(struct loop *loop, int64_t wait_max_ns);

void __wrap_loop_turn(struct loop *loop, int64_t wait_max_ns)
{
    if (loop != faults.loop) {
        __real_loop_turn(loop, wait_max_ns);
        return;
    }
    faults.turns++;
    faulty_memory_begin();
    __real_loop_turn(loop, wait_max_ns);
    faulty_memory_end();
    if (faults.check)
        faults.check();
}

/* The same choices in every run. */
uint64_t __wrap_random_seed_system(void);

uint64_t __wrap_random_seed_system(void)
{
    return 1;
}

/* -- Sockets -- */

static inline bool faulty_call_fails(void)
{
    faults.calls++;
    if (faults.kind != FAULT_CALL || faults.happened || faults.calls < faults.at)
        return false;
    faults.happened = true;
    return true;
}

enum status __real_loop_watch(struct loop *loop, struct io_watch *watch, unsigned events);
enum status __wrap_loop_watch(struct loop *loop, struct io_watch *watch, unsigned events);

enum status __wrap_loop_watch(struct loop *loop, struct io_watch *watch, unsigned events)
{
    bool changes = loop == faults.loop && watch->events != events;
    return changes && faulty_call_fails() ? ST_NOMEM : __real_loop_watch(loop, watch, events);
}

static inline enum status faulty_closed(struct socket *socket)
{
    socket->error_number = ECONNRESET;
    return ST_CLOSED;
}

static inline void faulty_happens(struct socket *socket)
{
    faults.happened = true;
    faults.dead = socket->handle;
    if (faults.kind == FAULT_RESET)
        sim_reset(socket);
    else if (faults.kind != FAULT_SILENCE)
        faulty_real_ops->shutdown(socket);
}

/* What a lost connection reads: nothing, although bytes may arrive. */
static inline enum status faulty_read_dead(struct socket *socket)
{
    uint8_t dropped[4096];
    size_t n;
    if (faults.kind == FAULT_END)
        return ST_END;
    if (faults.kind != FAULT_SILENCE)
        return faulty_closed(socket);
    enum status status = faulty_real_ops->read(socket, dropped, sizeof(dropped), &n);
    return status == ST_OK ? ST_AGAIN : status;
}

static inline void faulty_spoil(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = faults.bytes_read + i;
        if (at < faults.at || at >= faults.at + GARBAGE_BYTES)
            continue;
        bytes[i] = (uint8_t)(bytes[i] * 5 + at * 37 + 1);
        faults.happened = true;
    }
}

static inline bool faulty_cuts_reads(void)
{
    return !faults.happened &&
           (faults.kind == FAULT_LOST_READING || faults.kind == FAULT_RESET ||
            faults.kind == FAULT_END || faults.kind == FAULT_SILENCE || faults.kind == FAULT_EVERY);
}

/* Replaces the whole frames that have arrived. */
static inline void faulty_rewrite(struct buf *in, struct buf *out)
{
    while (in->len >= H2_FRAME_HEAD_BYTES) {
        struct h2_frame frame = h2_frame_get(in->ptr);
        size_t end = H2_FRAME_HEAD_BYTES + frame.len;
        if (in->len < end)
            break;
        size_t before = out->len;
        faults.rewrite(frame, slice_of(in->ptr + end - frame.len, frame.len), out);
        faults.rewritten += out->len != before + end;
        memmove(in->ptr, in->ptr + end, in->len - end);
        in->len -= end;
    }
}

/* Takes a little of what has arrived, because it may grow, and returns the frames that replace it.
 */
static inline enum status faulty_read_frames(struct socket *socket, void *to, size_t len,
                                             size_t *ret_len)
{
    uint8_t bytes[256];
    size_t n;
    AUTO(buf_fini) struct buf out = {0};
    struct buf *in = &faults.received[socket->handle];
    faults.rewriting = socket->handle;
    while (out.len == 0) {
        TRY(faulty_real_ops->read(socket, bytes, sizeof(bytes), &n));
        TRY(buf_append(in, slice_of(bytes, n)));
        faulty_rewrite(in, &out);
    }
    assert(out.len <= len);
    slice_copy(to, buf_slice(&out));
    *ret_len = out.len;
    return ST_OK;
}

static inline enum status faulty_read_now(struct socket *socket, void *to, size_t len,
                                          size_t *ret_len)
{
    if (faulty_call_fails())
        return faulty_closed(socket);
    if (faults.rewrite)
        return faulty_read_frames(socket, to, len, ret_len);
    if (faulty_cuts_reads()) {
        if (faults.bytes_read == faults.at)
            faulty_happens(socket);
        else
            len = size_min(len, faults.at - faults.bytes_read);
    }
    if (socket->handle == faults.dead)
        return faulty_read_dead(socket);
    TRY(faulty_real_ops->read(socket, to, len, ret_len));
    if (faults.kind == FAULT_GARBAGE)
        faulty_spoil(to, *ret_len);
    faults.bytes_read += *ret_len;
    return ST_OK;
}

static inline enum status faulty_read(struct socket *socket, void *to, size_t len, size_t *ret_len)
{
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    enum status status = faulty_read_now(socket, to, len, ret_len);
    memory_fail_at = at;
    return status;
}

static inline enum status faulty_write_now(struct socket *socket, const struct iovec *parts,
                                           int count, size_t *ret_len)
{
    struct iovec first = parts[0];
    assert(count == 1);
    if (faulty_call_fails())
        return faulty_closed(socket);
    if (faults.kind == FAULT_LOST_WRITING && !faults.happened) {
        if (faults.bytes_written == faults.at)
            faulty_happens(socket);
        else
            first.iov_len = size_min(first.iov_len, faults.at - faults.bytes_written);
    }
    if (socket->handle == faults.dead && faults.kind == FAULT_SILENCE) {
        *ret_len = first.iov_len;
        return ST_OK;
    }
    if (socket->handle == faults.dead)
        return faulty_closed(socket);
    TRY(faulty_real_ops->writev(socket, &first, count, ret_len));
    faults.bytes_written += *ret_len;
    return ST_OK;
}

static inline enum status faulty_writev(struct socket *socket, const struct iovec *parts, int count,
                                        size_t *ret_len)
{
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    enum status status = faulty_write_now(socket, parts, count, ret_len);
    memory_fail_at = at;
    return status;
}

static inline void faulty_shutdown(struct socket *socket)
{
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    faulty_real_ops->shutdown(socket);
    memory_fail_at = at;
}

static inline void faulty_close(struct socket *socket)
{
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    if (socket->handle == faults.dead)
        faults.dead = -1;
    buf_fini(&faults.received[socket->handle]);
    faulty_real_ops->close(socket);
    memory_fail_at = at;
}

static inline enum status faulty_peer(const struct socket *socket, struct address *ret_address)
{
    return faulty_real_ops->peer(socket, ret_address);
}

static inline enum status faulty_connected(struct socket *socket)
{
    return faulty_call_fails() ? faulty_closed(socket) : faulty_real_ops->connected(socket);
}

/* -- The network -- */

static inline enum status faulty_loop_new(struct network *network, struct loop **ret_loop)
{
    (void)network;
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    enum status status = network_loop_new(faults.real, ret_loop);
    memory_fail_at = at;
    faults.loop = status == ST_OK ? *ret_loop : NULL;
    return status;
}

static inline enum status faulty_connect(struct network *network, const struct address *address,
                                         struct socket *ret_socket, struct error *error)
{
    static const struct socket_ops ops = {
        .read = faulty_read,
        .writev = faulty_writev,
        .shutdown = faulty_shutdown,
        .close = faulty_close,
        .peer = faulty_peer,
        .connected = faulty_connected,
    };
    (void)network;
    faults.connects++;
    if (faults.kind == FAULT_EVERY) {
        faults.happened = false;
        faults.bytes_read = 0;
    }
    if (faulty_call_fails())
        return error_set(error, ST_LIMIT, "too many open files");
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    enum status status = network_connect(faults.real, address, ret_socket, error);
    memory_fail_at = at;
    if (status == ST_OK) {
        assert(ret_socket->handle < FAULTY_HANDLES_MAX);
        faulty_real_ops = ret_socket->ops;
        ret_socket->ops = &ops;
    }
    return status;
}

/* Nothing goes wrong until kind and at are set. */
static inline struct network *faulty_network(struct network *real)
{
    static const struct network_ops ops = {.loop_new = faulty_loop_new, .connect = faulty_connect};
    faults = (struct faults){
        .network = {.ops = &ops, .stepped = real->stepped}, .real = real, .dead = -1};
    return &faults.network;
}

#endif
