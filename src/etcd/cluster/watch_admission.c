#include "etcd/cluster/watch_admission.h"

#include "base/memory/budget.h"
#include "etcd/shared/service.h"

#include <stdlib.h>

enum { FIRST_BYTES = 512, REQUEST_BYTES_MAX = 16 << 20 };

struct watch_admission {
    struct engine_admission engine;
    struct etcd_api *api;
    struct watch_admission_owner owner;
    bool pending;   /* the engine has not answered */
    bool starting;  /* within watch_admission_start */
    bool abandoned; /* to be freed when it is answered */
    struct pb_watch_request request;
    struct arena arena;      /* memory of the request; charged */
    struct account *account; /* a reference; NULL: nothing is charged */
    struct buf queue;        /* charged: messages, each after its length */
    size_t queue_at;         /* those before are done with */
    uint8_t first[FIRST_BYTES];
};

static void arena_begin(struct watch_admission *a)
{
    arena_init(&a->arena, a->first, sizeof(a->first), REQUEST_BYTES_MAX);
    if (a->account)
        arena_charge(&a->arena, a->account);
}

struct watch_admission *watch_admission_new(struct etcd_api *api, struct account *account,
                                            struct watch_admission_owner owner)
{
    struct watch_admission *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->api = api;
    a->owner = owner;
    a->account = account;
    if (a->account)
        account_ref(a->account);
    arena_begin(a);
    return a;
}

static void queue_fini(struct watch_admission *a)
{
    if (a->account)
        account_buf_fini(a->account, &a->queue);
    else
        buf_fini(&a->queue);
    a->queue_at = 0;
}

void watch_admission_free(struct watch_admission *a)
{
    if (!a)
        return;
    queue_fini(a);
    if (a->pending) {
        a->abandoned = true;
        return;
    }
    arena_fini(&a->arena);
    if (a->account)
        account_unref(a->account);
    free(a);
}

static void on_done(struct engine_op *op)
{
    struct watch_admission *a = CONTAINER_OF(op, struct watch_admission, engine.op);
    a->pending = false;
    a->api->under_way--;
    if (a->abandoned)
        watch_admission_free(a);
    else if (!a->starting)
        a->owner.answered(a->owner.ctx);
}

static void set_range(struct watch_admission *a)
{
    assert(a->request.request_union_case == PB_WATCH_REQUEST_CREATE_REQUEST);
    struct slice key = a->request.create_request->key;
    a->engine.key = key.len ? key : SLICE_LITERAL("\0"); /* as the watch itself */
    a->engine.range_end = a->request.create_request->range_end;
    a->engine.start_revision = a->request.create_request->start_revision;
}

enum status watch_admission_start(struct watch_admission *a, struct slice token,
                                  struct slice message)
{
    assert(!a->pending);
    arena_fini(&a->arena);
    arena_begin(a);
    TRY(arena_dup(&a->arena, message, &message));
    TRY(arena_dup(&a->arena, token, &token));
    TRY(pb_decode(&pb_watch_request_table, message, &a->arena, &a->request));
    a->engine = (struct engine_admission){
        .op = {.done = on_done, .arena = &a->arena, .principal = {.token = token}}};
    if (a->request.request_union_case == PB_WATCH_REQUEST_PROGRESS_REQUEST)
        a->engine.op.principal = ENGINE_SERVER;
    else
        set_range(a);
    a->pending = a->starting = true;
    a->api->under_way++;
    engine_watch_admit(a->api->shard, &a->engine);
    a->starting = false;
    return a->pending ? ST_AGAIN : ST_OK;
}

bool watch_admission_is_pending(const struct watch_admission *a)
{
    return a && a->pending;
}

enum status watch_admission_status(const struct watch_admission *a)
{
    assert(!a->pending);
    return a->engine.op.status;
}

bool watch_admission_is_foreign(const struct watch_admission *a)
{
    return a->engine.is_foreign;
}

struct slice watch_admission_text(const struct watch_admission *a)
{
    const struct engine_op *op = &a->engine.op;
    return op->text.len ? op->text : slice_from_text(status_text(op->status));
}

const struct pb_watch_request *watch_admission_request(const struct watch_admission *a)
{
    return &a->request;
}

static enum status append(struct watch_admission *a, struct slice bytes)
{
    return a->account ? account_append(a->account, &a->queue, bytes) : buf_append(&a->queue, bytes);
}

enum status watch_admission_queue(struct watch_admission *a, struct slice message)
{
    uint64_t len = message.len;
    if (a->queue.len - a->queue_at + message.len > WATCH_ADMISSION_QUEUE_BYTES_MAX)
        return ST_LIMIT;
    buf_consume(&a->queue, a->queue_at);
    a->queue_at = 0;
    TRY(append(a, slice_of(&len, sizeof(len))));
    return append(a, message);
}

bool watch_admission_next(struct watch_admission *a, struct slice *ret_message)
{
    uint64_t len;
    if (a->queue_at == a->queue.len)
        return false;
    memcpy(&len, a->queue.ptr + a->queue_at, sizeof(len));
    a->queue_at += sizeof(len);
    *ret_message = slice_of(a->queue.ptr + a->queue_at, (size_t)len);
    a->queue_at += (size_t)len;
    return true;
}
