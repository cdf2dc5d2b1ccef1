#include "embed/direct.h"

#include "client/connect/error.h"
#include "codec/pb/rpc.pb.h"
#include "embed/futex.h"
#include "embed/request.h"
#include "engine/local/shard/direct.h"
#include "etcd/service/kv_check.h"
#include "etcd/shared/service.h"
#include "store/mvcc/applier.h"
#include "store/mvcc/txn.h"
#include "store/record/change.h"

#include <sched.h>

/* Work between two looks at the time and at whether the call was canceled: less than a millisecond.
 */
enum { KEYS_AT_ONCE = 2048, BYTES_AT_ONCE = 1 << 20 };

/* Threads that wake each other one after the other when a group is durable. The last one waits for
 * the others to get a core, so there are few. */
enum { WOKEN_IN_TURN = 4 };

/*
 * How often a thread lets others run before it sleeps. To sleep and to be woken costs more than a
 * put, and with so many threads that wait, the answer is there when each has run once or twice. If
 * the core is given to another program instead, that takes a time slice: then threads sleep at once
 * for a while, up to 2^YIELD_MISSES_MAX waits.
 */
enum { YIELDS_MAX = 8, YIELD_THREADS_MIN = 8, YIELD_MISSES_FIRST = 6, YIELD_MISSES_MAX = 12 };
static const int64_t yield_ns_max = NS_PER_MS;

/* Drawn in direct.h. */
enum direct_state { DIRECT_WAITING, DIRECT_ASLEEP, DIRECT_DONE, DIRECT_LEFT };

/* One write. In the arena of its call, of which it has a reference while the engine uses it. */
struct direct_write {
    struct engine_write write; /* first */
    struct embed_direct *direct;
    struct vigil_call *call;
    struct local_reader *reader; /* pins what the answer refers to; NULL: nothing */
    unsigned stripe;             /* in which the thread is counted */
    _Atomic uint32_t state;      /* enum direct_state */
    struct direct_write *wakes;  /* when it is done: the next one to be woken; NULL: none */
    /* The response of a put without a previous value. */
    struct pb_put_response put_response;
    struct pb_response_header header;
    union {
        struct pb_put_request put;
        struct pb_delete_range_request delete_range;
        struct pb_txn_request txn;
        struct pb_compaction_request compaction;
    };
};

/* -- Who is inside -- */

static unsigned stripe_of_thread(void)
{
    static _Atomic unsigned threads;
    static _Thread_local unsigned stripe; /* plus one */
    if (UNLIKELY(!stripe))
        stripe = atomic_fetch_add(&threads, 1) % DIRECT_STRIPES + 1;
    return stripe - 1;
}

/* False: it is closed. Either the closing thread sees the count, or we see that it is closed. */
static bool enter(struct embed_direct *direct, unsigned stripe)
{
    atomic_fetch_add(&direct->inside[stripe].count, 1);
    if (LIKELY(!atomic_load(&direct->closed)))
        return true;
    atomic_fetch_sub(&direct->inside[stripe].count, 1);
    return false;
}

static void leave(struct embed_direct *direct, unsigned stripe)
{
    atomic_fetch_sub_explicit(&direct->inside[stripe].count, 1, memory_order_release);
}

void embed_direct_init(struct embed_direct *direct, struct embed_store *store,
                       struct engine_shard *shard, struct etcd_api *etcd)
{
    direct->store = store;
    direct->shard = shard;
    direct->etcd = etcd;
    atomic_store(&direct->closed, false);
    atomic_store(&direct->waiting, 0);
    atomic_store(&direct->yield_misses, 0);
    atomic_store(&direct->yield_pause, 0);
}

void embed_direct_close(struct embed_direct *direct)
{
    atomic_store(&direct->closed, true);
}

bool embed_direct_is_busy(const struct embed_direct *direct)
{
    for (int i = 0; i < DIRECT_STRIPES; i++)
        if (atomic_load(&direct->inside[i].count))
            return true;
    return direct->begun > 0;
}

/* -- Results -- */

/* The error of a call, with the reason if the store has failed. */
static void set_status(struct embed_direct *direct, struct vigil_call *call, enum status status)
{
    vigil_error *error = &call->operation.error;
    const char *failure = embed_store_failure(direct->store);
    if (LIKELY(status == ST_OK))
        *error = (vigil_error){.grpc_code = GRPC_OK};
    else if (failure && (status == ST_TIMEOUT || status == ST_STOPPED))
        client_error_set(error, VIGIL_ERROR_SYSTEM,
                         status == ST_TIMEOUT ? VIGIL_UNKNOWN : VIGIL_NOT_SENT, "%s", failure);
    else
        client_error_from_server(error, status_code(status), slice_from_text(status_text(status)));
    if (status == ST_NO_SPACE)
        error->outcome =
            VIGIL_REFUSED; /* unlike etcd, the store refuses before it changes anything */
}

static bool has_failed(struct embed_direct *direct, struct vigil_call *call)
{
    if (LIKELY(!embed_store_failure(direct->store)))
        return false;
    set_status(direct, call, ST_STOPPED);
    return true;
}

static void set_timed_out(struct vigil_call *call)
{
    client_error_set(&call->operation.error, VIGIL_ERROR_TIMEOUT, VIGIL_UNKNOWN,
                     "no answer within %lld ms", (long long)call->timeout_ms);
}

/* When the call must have ended. */
static int64_t end_of(const struct vigil_call *call)
{
    return call->timeout_ms > 0
               ? clock_add(clock_mono_ns(clock_system()), driver_ns(call->timeout_ms))
               : CLOCK_NEVER;
}

/* Whether a read that takes long ends without a result; then the error is set. */
static bool is_given_up(struct vigil_call *call, int64_t end_ns)
{
    if (atomic_load_explicit(&call->operation.canceled, memory_order_relaxed))
        client_error_set(&call->operation.error, VIGIL_ERROR_CANCELED, VIGIL_UNKNOWN,
                         "the call was canceled");
    else if (end_ns != CLOCK_NEVER && clock_mono_ns(clock_system()) >= end_ns)
        set_timed_out(call);
    else
        return false;
    return true;
}

/* The response is complete in the arena. What was done cannot be taken back. */
static void take_message(struct vigil_call *call, struct slice message)
{
    vigil_error *error = &call->operation.error;
    enum status status = client_call_decode(call, message);
    call->attempts = 1;
    if (LIKELY(status == ST_OK))
        *error = (vigil_error){.grpc_code = GRPC_OK};
    else
        client_error_set(error, status == ST_LIMIT ? VIGIL_ERROR_TOO_LARGE : VIGIL_ERROR_MEMORY,
                         VIGIL_UNKNOWN, "the response takes too much memory when it is decoded");
}

/* -- Ranges -- */

/* The most common read by far. */
static bool is_plain_get(const struct pb_range_request *request)
{
    return request->range_end.len == 0 && request->revision == 0 && !request->keys_only &&
           !request->count_only && !request->min_mod_revision && !request->max_mod_revision &&
           !request->min_create_revision && !request->max_create_revision;
}

/* An upper bound of the length of a response with key-values of this length. */
static uint64_t response_bytes(uint64_t kvs_bytes)
{
    return kvs_bytes + KV_HEADER_BYTES_MAX + KV_RANGE_TAIL_BYTES_MAX;
}

/* Room for a response with key-values of this length; NULL: it is too long, or no memory. */
static uint8_t *response_room(struct vigil_call *call, uint64_t kvs_bytes)
{
    uint64_t bytes = response_bytes(kvs_bytes);
    return bytes <= call->client->receive_bytes_max ? arena_alloc(&call->arena, (size_t)bytes)
                                                    : NULL;
}

/* The response of a get, as if it had been decoded. */
struct get_response {
    struct pb_range_response range; /* first */
    struct pb_response_header header;
    struct pb_key_value kv;
    uint8_t bytes[]; /* key and value */
};

static struct slice copy_to(uint8_t **to, struct slice bytes)
{
    struct slice copy = slice_of(*to, bytes.len);
    slice_copy(*to, bytes);
    *to += bytes.len;
    return bytes.len ? copy : SLICE_EMPTY;
}

static void fill_get(struct get_response *response, const struct change_kv *found)
{
    uint8_t *to = response->bytes;
    response->kv = (struct pb_key_value){
        .key = copy_to(&to, found->key),
        .create_revision = found->create_revision,
        .mod_revision = found->mod_revision,
        .version = found->version,
        .value = copy_to(&to, found->value),
        .lease = found->lease,
    };
    response->range.kvs = &response->kv;
    response->range.kvs_count = 1;
    response->range.count = 1;
}

static enum status answer_get(struct embed_direct *direct, struct vigil_call *call,
                              struct local_reader *reader, struct slice key)
{
    const struct change_head *change;
    struct change_kv found = {0};
    TRY(local_reader_get(reader, key, &change));
    if (change && response_bytes(change->field_bytes) > call->client->receive_bytes_max)
        return ST_AGAIN;
    if (change)
        change_read_kv(change, &found);
    struct get_response *response =
        arena_alloc(&call->arena, sizeof(*response) + found.key.len + found.value.len);
    if (!response)
        return ST_AGAIN;
    response->range = (struct pb_range_response){.header = &response->header};
    etcd_header_fill(direct->etcd, local_reader_state(reader)->revision, &response->header);
    if (change)
        fill_get(response, &found);
    client_call_take_response(call, &response->range);
    call->attempts = 1;
    call->operation.error.code = VIGIL_OK;
    call->operation.error.grpc_code = GRPC_OK;
    return ST_OK;
}

/* ST_CANCELED: it was given up, and the error is set. */
static enum status prepare_range(struct vigil_call *call, struct range *range, int64_t end_ns)
{
    enum status status = ST_AGAIN;
    while (status == ST_AGAIN) {
        size_t keys = KEYS_AT_ONCE;
        status = range_step(range, &keys);
        if (status == ST_AGAIN && is_given_up(call, end_ns))
            return ST_CANCELED;
    }
    return status;
}

static enum status fill_range(struct vigil_call *call, struct range *range, uint8_t *to,
                              int64_t end_ns)
{
    for (uint64_t left = range->kvs_bytes; left > 0;) {
        size_t room = left < BYTES_AT_ONCE ? (size_t)left : BYTES_AT_ONCE;
        if (range_fill(range, to, room) < room)
            return ST_CORRUPT;
        to += room;
        left -= room;
        if (left > 0 && is_given_up(call, end_ns))
            return ST_CANCELED;
    }
    return ST_OK;
}

static enum status write_range(struct embed_direct *direct, struct vigil_call *call,
                               struct range *range, int64_t revision, int64_t end_ns)
{
    TRY(prepare_range(call, range, end_ns));
    uint8_t *message = response_room(call, range->kvs_bytes), *end = message;
    if (!message)
        return ST_AGAIN;
    struct kv_header header = etcd_header(direct->etcd, revision);
    end = kv_header_write(end, &header);
    TRY(fill_range(call, range, end, end_ns));
    end = kv_range_tail_write(end + range->kvs_bytes, range->more, range->count);
    take_message(call, slice_of(message, (size_t)(end - message)));
    return ST_OK;
}

static enum status answer_range(struct embed_direct *direct, struct vigil_call *call,
                                struct local_reader *reader, const struct pb_range_request *request)
{
    struct range range;
    const struct range_state *state = local_reader_state(reader);
    int64_t end_ns = end_of(call);
    TRY(range_begin(&range, state, request));
    enum status status = write_range(direct, call, &range, state->revision, end_ns);
    range_fini(&range);
    return status;
}

/* False: it goes to the connection, which has a token or can say that the answer is too long. */
static bool run_range(struct embed_direct *direct, struct vigil_call *call,
                      const struct pb_range_request *request)
{
    enum status status = kv_check_range(request);
    if (status != ST_OK) {
        set_status(direct, call, status);
        return true;
    }
    struct local_reader *reader = local_reader_begin(direct->store->engine);
    if (!reader)
        return false;
    if (!local_reader_is_free(reader))
        status = ST_AGAIN;
    else if (is_plain_get(request))
        status = answer_get(direct, call, reader, request->key);
    else
        status = answer_range(direct, call, reader, request);
    local_reader_end(reader);
    if (status == ST_AGAIN)
        return false;
    if (status != ST_OK && status != ST_CANCELED)
        set_status(direct, call, status == ST_DAMAGED ? ST_CORRUPT : status);
    return true;
}

/* -- Requests that write -- */

static enum status decode(struct direct_write *w, const struct pb_message *type, void *request)
{
    return pb_decode(type, client_call_request(w->call), &w->call->arena, request);
}

static enum status check_txn(struct direct_write *w)
{
    struct embed_direct *direct = w->direct;
    struct slice message = client_call_request(w->call);
    size_t ops_max = direct->store->etcd.txn_ops_max;
    if (kv_txn_is_too_long(message, ops_max))
        return ST_TOO_MANY_OPS;
    TRY(decode(w, &pb_txn_request_table, &w->txn));
    TRY(kv_check_txn(&w->txn, ops_max, &w->call->arena));
    return kv_txn_reads_only(&w->txn) ? ST_OK : etcd_check_size(direct->etcd, message.len);
}

/* Decodes the request and checks it as the API does. */
static enum status check(struct direct_write *w)
{
    size_t bytes = client_call_request(w->call).len;
    switch (w->call->method->kind) {
    case LOCAL_KIND_PUT:
        TRY(embed_request_put(w->call, &w->put));
        TRY(kv_check_put(&w->put));
        return etcd_check_size(w->direct->etcd, bytes);
    case LOCAL_KIND_DELETE:
        TRY(decode(w, &pb_delete_range_request_table, &w->delete_range));
        TRY(kv_check_delete_range(&w->delete_range));
        return etcd_check_size(w->direct->etcd, bytes);
    case LOCAL_KIND_TXN:
        return check_txn(w);
    default:
        return decode(w, &pb_compaction_request_table, &w->compaction);
    }
}

/* NULL: no memory, or the request is refused; then the error is set. */
static struct direct_write *write_new(struct embed_direct *direct, struct vigil_call *call,
                                      void (*done)(struct engine_op *op))
{
    struct direct_write *w = arena_calloc(&call->arena, 1, sizeof(*w));
    if (!w) {
        client_error_set(&call->operation.error, VIGIL_ERROR_MEMORY, VIGIL_NOT_SENT,
                         "out of memory");
        return NULL;
    }
    w->direct = direct;
    w->call = call;
    w->write.op.done = done;
    w->write.op.arena = &call->arena;
    enum status status = check(w);
    if (status == ST_OK)
        return w;
    set_status(direct, call, status);
    return NULL;
}

/* The state that the answer refers to is still pinned. */
static void take_answer(struct direct_write *w)
{
    struct vigil_call *call = w->call;
    struct kv_header header = etcd_header(w->direct->etcd, w->write.op.revision);
    struct kv_plan plan;
    struct kv_writer writer;
    uint8_t *message = NULL;
    bool planned = kv_plan_make(&plan, &w->write.answer, &header, &call->arena) == ST_OK;
    if (planned && plan.bytes > call->client->receive_bytes_max) { /* as from a server */
        client_error_set(&call->operation.error, VIGIL_ERROR_TOO_LARGE, VIGIL_UNKNOWN,
                         "the response of %zu bytes exceeds receive_bytes_max", plan.bytes);
        return;
    }
    if (planned)
        message = arena_alloc(&call->arena, plan.bytes);
    if (!message) { /* but the change was made */
        client_error_set(&call->operation.error, VIGIL_ERROR_MEMORY, VIGIL_UNKNOWN,
                         "there is no memory for the response");
        return;
    }
    kv_writer_init(&writer, &plan);
    size_t filled = kv_writer_fill(&writer, message, plan.bytes);
    take_message(call, slice_of(message, filled));
}

/* The response has nothing but a header, which is decoded to numbers. */
static void take_header(struct direct_write *w)
{
    uint8_t message[KV_HEADER_BYTES_MAX];
    struct kv_header header = etcd_header(w->direct->etcd, w->write.op.revision);
    uint8_t *end = kv_header_write(message, &header);
    take_message(w->call, slice_of(message, (size_t)(end - message)));
}

/* The same for a put, as if it had been decoded. */
static void take_put(struct direct_write *w)
{
    struct vigil_call *call = w->call;
    w->put_response = (struct pb_put_response){.header = &w->header};
    etcd_header_fill(w->direct->etcd, w->write.op.revision, &w->header);
    client_call_take_response(call, &w->put_response);
    call->attempts = 1;
    call->operation.error.code = VIGIL_OK;
    call->operation.error.grpc_code = GRPC_OK;
}

static void take_result(struct direct_write *w)
{
    enum client_local_kind kind = w->call->method->kind;
    enum status status = w->write.op.status;
    if (status != ST_OK)
        set_status(w->direct, w->call, status);
    else if (kind == LOCAL_KIND_PUT && !w->put.prev_kv)
        take_put(w);
    else if (kind == LOCAL_KIND_COMPACT)
        take_header(w);
    else
        take_answer(w);
}

/* -- Writes of a thread that waits -- */

static struct direct_write *write_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct direct_write, write.op.in_mailbox);
}

/* It is done. False: its thread sleeps or has left. */
static bool finish_awake(struct direct_write *w)
{
    struct vigil_call *call = w->call;
    uint32_t waiting = DIRECT_WAITING;
    if (!atomic_compare_exchange_strong(&w->state, &waiting, DIRECT_DONE))
        return false;
    operation_unref(&call->operation);
    return true;
}

/* It is done; its thread, if it still sleeps, does the same for the next ones. */
static void wake(struct direct_write *w)
{
    for (struct direct_write *next; w; w = next) {
        struct vigil_call *call = w->call;
        next = w->wakes;
        bool sleeps = atomic_exchange(&w->state, DIRECT_DONE) == DIRECT_ASLEEP;
        if (sleeps) {
            futex_wake(&w->state);
        } else {
            if (w->reader)
                local_reader_end(w->reader);
            leave(w->direct, w->stripe);
        }
        operation_unref(&call->operation);
        if (sleeps)
            return;
    }
}

/*
 * On the writer's thread, with the operations of a group. Of the threads that sleep it wakes the
 * first of each WOKEN_IN_TURN, and these wake each other: a system call that wakes a thread takes
 * longer than a put, and the threads that were woken would compete with the writer for its core.
 */
static void on_done(struct engine_op *op)
{
    struct direct_write *first = NULL, *last = NULL;
    int count = 0;
    for (struct mailbox_node *node = &op->in_mailbox, *next; node; node = next) {
        struct direct_write *w = write_of(node);
        next = node->next; /* read first: a thread that is not asleep may free it */
        if (finish_awake(w))
            continue;
        if (first)
            last->wakes = w;
        else
            first = w;
        last = w;
        if (++count % WOKEN_IN_TURN == 0)
            wake(TAKE(first));
    }
    wake(first);
}

static void post(struct direct_write *w)
{
    struct engine *engine = w->direct->store->engine;
    operation_ref(&w->call->operation);
    switch (w->call->method->kind) {
    case LOCAL_KIND_PUT:
        local_direct_start(engine, &w->write.op, ENGINE_PUT, &w->put);
        break;
    case LOCAL_KIND_DELETE:
        local_direct_start(engine, &w->write.op, ENGINE_DELETE_RANGE, &w->delete_range);
        break;
    case LOCAL_KIND_TXN:
        local_direct_start(engine, &w->write.op, ENGINE_TXN, &w->txn);
        break;
    default:
        local_direct_start(engine, &w->write.op, ENGINE_COMPACT, &w->compaction);
    }
}

static bool is_done(const struct direct_write *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire) == DIRECT_DONE;
}

/* After a miss only one thread at a time tries again. */
enum yield_turn { YIELD_NOT, YIELD_FREELY, YIELD_TRY };

static enum yield_turn yield_turn(struct embed_direct *direct, int waiting)
{
    if (waiting < YIELD_THREADS_MIN)
        return YIELD_NOT;
    if (LIKELY(atomic_load_explicit(&direct->yield_misses, memory_order_relaxed) == 0))
        return YIELD_FREELY;
    int pause = atomic_fetch_sub_explicit(&direct->yield_pause, 1, memory_order_relaxed);
    return pause == 1 ? YIELD_TRY : YIELD_NOT;
}

static void note_yields(struct embed_direct *direct, enum yield_turn turn, bool missed)
{
    int misses = atomic_load_explicit(&direct->yield_misses, memory_order_relaxed);
    if (turn == YIELD_FREELY && (!missed || misses > 0))
        return;
    if (missed)
        misses = misses ? misses + 1 : YIELD_MISSES_FIRST;
    else if (misses > 0)
        misses--;
    misses = misses < YIELD_MISSES_MAX ? misses : YIELD_MISSES_MAX;
    atomic_store_explicit(&direct->yield_pause, 1 << misses, memory_order_relaxed);
    atomic_store_explicit(&direct->yield_misses, misses, memory_order_relaxed);
}

/* True: it is done. Missed: another program was given the core. */
static bool yield_some(struct direct_write *w, bool *ret_missed)
{
    *ret_missed = false;
    int64_t begun_ns = clock_mono_ns(clock_system());
    for (int i = 0; i < YIELDS_MAX && !*ret_missed; i++) {
        if (is_done(w))
            return true;
        sched_yield();
        int64_t now_ns = clock_mono_ns(clock_system());
        *ret_missed = now_ns - begun_ns > yield_ns_max;
        begun_ns = now_ns;
    }
    return is_done(w);
}

/* Lets other threads run until it is done. False: that has not helped, and the thread sleeps. */
static bool await_awake(struct direct_write *w, int waiting)
{
    enum yield_turn turn = yield_turn(w->direct, waiting);
    bool missed = false;
    if (turn == YIELD_NOT)
        return false;
    bool done = yield_some(w, &missed);
    note_yields(w->direct, turn, missed);
    return done;
}

/* False: the timeout has passed, and the writer drops the answer. */
static bool await_asleep(struct direct_write *w, int64_t end_ns)
{
    uint32_t waiting = DIRECT_WAITING;
    if (!atomic_compare_exchange_strong(&w->state, &waiting, DIRECT_ASLEEP))
        return true;
    while (!is_done(w)) {
        if (futex_wait(&w->state, DIRECT_ASLEEP, end_ns))
            continue;
        uint32_t asleep = DIRECT_ASLEEP;
        if (atomic_compare_exchange_strong(&w->state, &asleep, DIRECT_LEFT))
            return false;
    }
    return true;
}

/* The same. */
static bool await(struct direct_write *w)
{
    struct embed_direct *direct = w->direct;
    int64_t end_ns = end_of(w->call);
    int waiting = 1 + atomic_fetch_add_explicit(&direct->waiting, 1, memory_order_relaxed);
    bool done = await_awake(w, waiting) || await_asleep(w, end_ns);
    atomic_fetch_sub_explicit(&direct->waiting, 1, memory_order_relaxed);
    return done;
}

static bool needs_reader(const struct direct_write *w)
{
    enum client_local_kind kind = w->call->method->kind;
    return (kind == LOCAL_KIND_PUT && w->put.prev_kv) ||
           (kind == LOCAL_KIND_DELETE && w->delete_range.prev_kv) || kind == LOCAL_KIND_TXN;
}

/* A transaction that only reads is executed here. */
static void read_txn(struct direct_write *w)
{
    struct txn_reading reading;
    enum status status = ST_AGAIN;
    const struct range_state *state = local_reader_state(w->reader);
    int64_t end_ns = end_of(w->call);
    txn_reading_begin(&reading, state, &w->txn, &w->call->arena);
    while (status == ST_AGAIN) {
        size_t keys = KEYS_AT_ONCE;
        status = txn_reading_step(&reading, &keys, &w->write.answer);
        if (status == ST_AGAIN && is_given_up(w->call, end_ns))
            status = ST_CANCELED;
    }
    txn_reading_fini(&reading);
    if (status == ST_CANCELED)
        return;
    w->write.op.status = status == ST_DAMAGED ? ST_CORRUPT : status;
    w->write.op.revision = state->revision;
    take_result(w);
}

enum direct_outcome { DIRECT_ANSWERED, DIRECT_ABANDONED, DIRECT_REFUSED };

static enum direct_outcome write_and_wait(struct direct_write *w)
{
    struct vigil_call *call = w->call;
    post(w);
    if (!await(w)) {
        set_timed_out(call);
        return DIRECT_ABANDONED;
    }
    wake(w->wakes);
    if (w->write.op.status == ST_USER_EMPTY)
        return DIRECT_REFUSED; /* authentication is enabled, and nothing was changed */
    take_result(w);
    return DIRECT_ANSWERED;
}

/* The thread is counted in the stripe, and is not any more unless the result is abandoned. */
static enum direct_outcome run_write(struct embed_direct *direct, struct vigil_call *call,
                                     unsigned stripe)
{
    struct direct_write *w = write_new(direct, call, on_done);
    if (!w)
        return DIRECT_ANSWERED;
    w->stripe = stripe;
    if (needs_reader(w)) {
        w->reader = local_reader_begin(direct->store->engine);
        if (!w->reader)
            return DIRECT_REFUSED;
    }
    enum direct_outcome outcome = DIRECT_ANSWERED;
    if (w->reader && !local_reader_is_free(w->reader))
        outcome = DIRECT_REFUSED;
    else if (call->method->kind == LOCAL_KIND_TXN && applier_txn_is_read_only(&w->txn))
        read_txn(w);
    else
        outcome = write_and_wait(w);
    if (outcome != DIRECT_ABANDONED && w->reader)
        local_reader_end(w->reader);
    return outcome;
}

static bool run_get(struct embed_direct *direct, struct vigil_call *call)
{
    struct pb_range_request request;
    return embed_request_range(call, &request) == ST_OK && run_range(direct, call, &request);
}

bool embed_direct_run(struct embed_direct *direct, struct vigil_call *call)
{
    unsigned stripe = stripe_of_thread();
    enum direct_outcome outcome = DIRECT_ANSWERED;
    if (!enter(direct, stripe))
        return false;
    if (has_failed(direct, call))
        outcome = DIRECT_ANSWERED;
    else if (call->method->kind == LOCAL_KIND_RANGE)
        outcome = run_get(direct, call) ? DIRECT_ANSWERED : DIRECT_REFUSED;
    else
        outcome = run_write(direct, call, stripe);
    if (outcome != DIRECT_ABANDONED)
        leave(direct, stripe);
    return outcome != DIRECT_REFUSED;
}

/* -- Calls with a callback, on the loop's thread -- */

static void on_answer(struct engine_op *op)
{
    struct direct_write *w = CONTAINER_OF(op, struct direct_write, write.op);
    struct vigil_call *call = w->call;
    bool wanted = call->state == CALL_SENT;
    /* Authentication was enabled meanwhile, and nothing was changed. */
    bool passed_on = wanted && op->status == ST_USER_EMPTY;
    w->direct->begun--;
    if (wanted && !passed_on)
        take_result(w);
    if (call->method->kind != LOCAL_KIND_COMPACT)
        engine_write_close(&w->write);
    if (passed_on)
        client_call_pass_on(call);
    else if (wanted)
        client_call_complete(call);
    operation_unref(&call->operation);
}

static void begin_write(struct embed_direct *direct, struct vigil_call *call)
{
    struct direct_write *w = write_new(direct, call, on_answer);
    if (!w) {
        client_call_complete(call);
        return;
    }
    operation_ref(&call->operation);
    direct->begun++;
    if (call->method->kind == LOCAL_KIND_PUT)
        engine_put(direct->shard, &w->write, &w->put);
    else if (call->method->kind == LOCAL_KIND_DELETE)
        engine_delete_range(direct->shard, &w->write, &w->delete_range);
    else if (call->method->kind == LOCAL_KIND_TXN)
        engine_txn(direct->shard, &w->write, &w->txn);
    else
        engine_compact(direct->shard, &w->write.op, &w->compaction);
}

static bool begin_range(struct embed_direct *direct, struct vigil_call *call)
{
    struct pb_range_request request;
    if (embed_request_range(call, &request) != ST_OK || !is_plain_get(&request) ||
        !run_range(direct, call, &request))
        return false;
    client_call_complete(call);
    return true;
}

bool embed_direct_begin(struct embed_direct *direct, struct vigil_call *call)
{
    if (has_failed(direct, call)) {
        client_call_complete(call);
        return true;
    }
    if (atomic_load(&direct->closed) || engine_auth_enabled(direct->shard))
        return false;
    if (call->method->kind == LOCAL_KIND_RANGE)
        return begin_range(direct, call);
    begin_write(direct, call);
    return true;
}
