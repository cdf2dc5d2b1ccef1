#include "kube/call/conversion_batch.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "kube/call/conversion_metrics.h"
#include "kube/custom/conversion_check.h"
#include "kube/custom/conversion_review.h"
#include "kube/types/object/meta.h"
#include "kube/types/object/object.h"
#include "kube/webhook/caller.h"

enum state { GATHERING, WRITING, CALLING, READING, DONE };

#define TO(state) (1u << (state))
static const unsigned moves[] = {
    [GATHERING] = TO(WRITING) | TO(DONE),
    [WRITING] = TO(CALLING) | TO(DONE),
    [CALLING] = TO(READING) | TO(WRITING) | TO(DONE),
    [READING] = TO(WRITING) | TO(DONE),
    [DONE] = 0,
};

struct object {
    size_t at, len; /* in `in`, behind the key */
    size_t key_len;
    int64_t revision;
    const struct kube_custom *from; /* NULL: it is in the wanted version already */
    struct slice converted;         /* in its block; empty: not converted so far */
};

/* The converted objects of one answer. */
struct block {
    struct block *next;
    struct buf bytes;
};

struct kube_conversion_batch {
    enum state state;
    struct kube_api *api;
    struct kube_definition *definition; /* a reference */
    const struct kube_custom *to;       /* one of its versions */
    struct account *account;            /* a reference; may be NULL */
    uint64_t peer;
    void (*done)(struct kube_conversion_batch *batch);
    void *owner;
    struct deferred later; /* calls done in the next turn */
    bool ending;           /* it will */

    struct buf in; /* the objects as they were given */
    struct object *objects;
    size_t count, room;
    struct block *blocks; /* owned */

    /* The objects of the question: `sent` of those from `at` on. */
    size_t at, end, most, sent;
    char uid[KUBE_UID_BYTES];
    char version[KUBE_API_VERSION_BYTES]; /* the text of `to` */
    struct buf body;
    struct kube_webhook_call call;
    int64_t timeout_ns, started_ns, deadline_ns;

    struct kube_offload_job job;
    bool away;    /* the worker has the batch */
    bool dropped; /* and it is freed when it is back */
    enum status worked;
    enum conversion_failure failure;
    struct buf why;
    struct kube_status status;
};

/* -- Objects -- */

struct kube_conversion_batch *kube_conversion_batch_new(struct kube_api *api,
                                                        const struct kube_custom *to,
                                                        struct account *account, uint64_t peer)
{
    struct kube_conversion_batch *b = xcalloc(1, sizeof(*b));
    b->api = api;
    b->definition = kube_definition_ref(to->definition);
    b->to = to;
    b->account = account;
    b->peer = peer;
    b->timeout_ns = KUBE_CONVERSION_NS;
    if (account)
        account_ref(account);
    kube_kind_api_version(&to->kind, b->version);
    return b;
}

/* A version that the definition does not have is reported when the batch is started. */
static const struct kube_custom no_version;

enum status kube_conversion_batch_add(struct kube_conversion_batch *b, struct kube_kv kv)
{
    struct kube_object object;
    assert(b->state == GATHERING);
    TRY(kube_object_parse_head(kv.value, &object));
    TRY(account_reserve(b->account, &b->in, kv.key.len + kv.value.len));
    TRY(buf_append(&b->in, kv.key));
    TRY(buf_append(&b->in, kv.value));
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 4;
        b->objects = xrealloc(b->objects, b->room * sizeof(*b->objects));
    }
    const struct kube_custom *from = kube_definition_version(b->definition, object.api_version);
    b->objects[b->count++] = (struct object){
        .key_len = kv.key.len,
        .at = b->in.len - kv.value.len,
        .len = kv.value.len,
        .revision = kv.mod_revision,
        .from = from == b->to ? NULL
                : from        ? from
                              : &no_version,
    };
    return ST_OK;
}

size_t kube_conversion_batch_count(const struct kube_conversion_batch *b)
{
    return b->count;
}

size_t kube_conversion_batch_bytes(const struct kube_conversion_batch *b)
{
    return b->in.len;
}

bool kube_conversion_batch_is_full(const struct kube_conversion_batch *b)
{
    return b->count >= KUBE_CONVERSION_OBJECTS_MAX || b->in.len >= KUBE_CONVERSION_BYTES_MAX;
}

bool kube_conversion_batch_awaits(const struct kube_conversion_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->objects[i].from)
            return true;
    return false;
}

static struct slice json_of(const struct kube_conversion_batch *b, const struct object *object)
{
    return slice_of(b->in.ptr + object->at, object->len);
}

struct kube_kv kube_conversion_batch_get(const struct kube_conversion_batch *b, size_t i,
                                         int64_t *ret_revision)
{
    const struct object *object = &b->objects[i];
    assert(i < b->count && (!object->from || object->converted.len));
    *ret_revision = object->revision;
    return (struct kube_kv){
        .key = slice_of(b->in.ptr + object->at - object->key_len, object->key_len),
        .value = object->from ? object->converted : json_of(b, object),
        .mod_revision = object->from ? 0 : object->revision,
    };
}

void *kube_conversion_batch_owner(const struct kube_conversion_batch *b)
{
    return b->owner;
}

/* -- The end -- */

static void drop_question(struct kube_conversion_batch *b)
{
    account_buf_fini(b->account, &b->body);
    kube_webhook_call_fini(&b->call);
}

static void on_later(struct deferred *deferred)
{
    struct kube_conversion_batch *b = CONTAINER_OF(deferred, struct kube_conversion_batch, later);
    b->api->under_way--;
    b->ending = false;
    b->done(b);
}

static void finish(struct kube_conversion_batch *b)
{
    STATE_MOVE(b->state, moves, DONE);
    drop_question(b);
    b->api->under_way++;
    b->ending = true;
    b->later.fn = on_later;
    loop_defer(b->api->loop, &b->later);
}

/* With the text in b->why. */
static void fail_by_text(struct kube_conversion_batch *b)
{
    kube_fail(&b->status, KUBE_UNKNOWN, "%.*s", SLICE_ARGS(buf_slice(&b->why)));
    b->status.long_message = buf_slice(&b->why);
    finish(b);
}

static void fail(struct kube_conversion_batch *b, enum status status)
{
    if (status == ST_REQUEST_TOO_MANY_REQUESTS) {
        kube_fail(&b->status, KUBE_TOO_MANY_REQUESTS,
                  "too many requests wait for the conversion webhook of %.*s",
                  SLICE_ARGS(b->definition->name));
        b->status.retry_after_s = 1;
    } else {
        kube_fail_engine(&b->status, status);
    }
    finish(b);
}

const struct kube_status *kube_conversion_batch_status(const struct kube_conversion_batch *b)
{
    assert(b->state == DONE);
    return &b->status;
}

bool kube_conversion_batch_fail(const struct kube_conversion_batch *b, struct arena *arena,
                                struct kube_status *status)
{
    *status = b->status;
    if (arena_dup(arena, b->status.long_message, &status->long_message) != ST_OK)
        status->long_message = SLICE_EMPTY; /* the message has its beginning */
    return false;
}

enum conversion_failure kube_conversion_batch_failure(const struct kube_conversion_batch *b)
{
    return b->failure;
}

static void free_memory(struct kube_conversion_batch *b)
{
    struct block *block;
    drop_question(b);
    while ((block = b->blocks)) {
        b->blocks = block->next;
        account_buf_fini(b->account, &block->bytes);
        free(block);
    }
    account_buf_fini(b->account, &b->in);
    buf_fini(&b->why);
    free(b->objects);
    kube_definition_unref(b->definition);
    if (b->account)
        account_unref(b->account);
    free(b);
}

void kube_conversion_batch_free(struct kube_conversion_batch *b)
{
    if (!b)
        return;
    b->dropped = true;
    if (b->away) {
        atomic_store_explicit(&b->job.worker.given_up, true, memory_order_relaxed);
        return;
    }
    if (b->ending) {
        loop_defer_cancel(&b->later);
        b->api->under_way--;
    }
    kube_webhook_call_cancel(&b->call);
    free_memory(b);
}

/* -- Working: here, or on the worker -- */

typedef enum status work_fn(struct kube_conversion_batch *batch);

static enum status write_question(struct kube_conversion_batch *b);
static enum status read_answer(struct kube_conversion_batch *b);
static void on_written(struct kube_conversion_batch *b, enum status status);
static void on_read(struct kube_conversion_batch *b, enum status status);

static void run(struct worker_job *job)
{
    struct kube_conversion_batch *b = CONTAINER_OF(job, struct kube_conversion_batch, job.worker);
    turn_work_copy("converting", b->definition->name, slice_from_text(b->version));
    b->worked = b->state == WRITING ? write_question(b) : read_answer(b);
}

static void end_work(struct kube_conversion_batch *b, enum status status)
{
    if (b->state == WRITING)
        on_written(b, status);
    else
        on_read(b, status);
}

static void back(struct kube_offload_job *job)
{
    struct kube_conversion_batch *b = CONTAINER_OF(job, struct kube_conversion_batch, job);
    b->api->under_way--;
    b->away = false;
    if (b->dropped)
        free_memory(b);
    else
        end_work(b, b->job.worker.status == ST_OK ? b->worked : b->job.worker.status);
}

/* The work of the state. Not refused: an answer may have begun, and each batch has one job. */
static void work(struct kube_conversion_batch *b, size_t bytes)
{
    bytes += b->to->schema ? pool_schema_work(b->to->schema) : 0;
    if (bytes <= KUBE_WORK_BYTES_MAX || !b->api->offload.worker) {
        end_work(b, b->state == WRITING ? write_question(b) : read_answer(b));
        return;
    }
    b->job = (struct kube_offload_job){.back = back, .worker = {.run = run, .must_run = true}};
    b->away = true;
    b->api->under_way++;
    enum status status = kube_offload_send(&b->api->offload, b->peer, b->account, &b->job);
    assert(status == ST_OK);
}

/* -- Writing -- */

/* An object that is older than its definition is sent as it would be served. */
static enum status append_renewed(struct kube_conversion_batch *b, const struct object *object,
                                  const struct schema *schema, struct buf *to)
{
    struct arena arena;
    struct json_node *tree;
    struct error error;
    arena_init(&arena, NULL, 0, KUBE_CONVERSION_TREE_BYTES);
    arena_charge(&arena, b->account);
    enum status status = json_tree_read(&arena, json_of(b, object), &tree, &error);
    if (status == ST_OK)
        status = schema_prune(schema, tree, true, NULL);
    if (status == ST_OK)
        status = schema_default(&arena, schema, tree);
    if (status == ST_OK)
        status = json_tree_write(tree, to);
    arena_fini(&arena);
    return status;
}

enum { END_BYTES = 128 }; /* more than what conversion_review_end appends */

static enum status add_object(struct kube_conversion_batch *b, const struct object *object)
{
    bool is_old = object->revision && object->revision < b->definition->spec_revision;
    const struct schema *schema =
        is_old ? kube_custom_schema((struct kube_custom *)(uintptr_t)object->from) : NULL;
    AUTO(buf_fini) struct buf renewed = {0};
    struct slice json = json_of(b, object);
    if (schema) {
        TRY(append_renewed(b, object, schema, &renewed));
        json = buf_slice(&renewed);
    }
    TRY(account_reserve(b->account, &b->body, json.len + END_BYTES));
    return conversion_review_add(json, !b->sent++, &b->body);
}

static enum status write_question(struct kube_conversion_batch *b)
{
    const struct conversion_review review = {b->definition->webhook.review_version,
                                             slice_from_text(b->uid), slice_from_text(b->version)};
    size_t bytes = 0;
    b->sent = 0;
    for (b->end = b->at; b->end < b->count && b->end - b->at < b->most; b->end++)
        bytes += b->objects[b->end].len + 1;
    TRY(account_reserve(b->account, &b->body, bytes + 1024));
    TRY(conversion_review_begin(&review, &b->body));
    for (size_t i = b->at; i < b->end; i++)
        if (b->objects[i].from)
            TRY(add_object(b, &b->objects[i]));
    return conversion_review_end(&b->body);
}

/* -- Calling -- */

static void on_called(struct kube_webhook_call *call);

/* The next objects, or the end. */
static void go_on(struct kube_conversion_batch *b)
{
    drop_question(b);
    while (b->at < b->count && !b->objects[b->at].from)
        b->at++;
    if (b->at == b->count) {
        finish(b);
        return;
    }
    STATE_MOVE(b->state, moves, WRITING);
    kube_uid_make(&b->api->random, b->uid);
    work(b, b->in.len);
}

static void on_written(struct kube_conversion_batch *b, enum status status)
{
    int64_t now_ns = loop_now_ns(b->api->loop);
    if (status != ST_OK) {
        fail(b, status);
        return;
    }
    STATE_MOVE(b->state, moves, CALLING);
    b->started_ns = now_ns;
    b->call = (struct kube_webhook_call){
        .target = b->definition->webhook.target,
        .use = KUBE_WEBHOOK_CONVERTS,
        .body = buf_slice(&b->body),
        .timeout_ns = b->deadline_ns > now_ns ? b->deadline_ns - now_ns : 1,
        .agent = SLICE_LITERAL("kube-apiserver-admission"),
        .account = b->account,
        .done = on_called,
        .owner = b,
    };
    kube_webhook_call_start(b->api->webhooks, &b->call);
}

static const struct object *first_sent(const struct kube_conversion_batch *b)
{
    const struct object *object = &b->objects[b->at];
    while (!object->from)
        object++;
    return object;
}

/* "conversion webhook for example.com/v1, Kind=Widget failed: …" */
static enum status explain(struct kube_conversion_batch *b, struct slice why)
{
    char version[KUBE_API_VERSION_BYTES];
    const struct kube_kind *from = &first_sent(b)->from->kind;
    buf_reset(&b->why, SIZE_MAX);
    TRY(buf_append_text(&b->why, "conversion webhook for "));
    TRY(conversion_print_kind(slice_from_text(kube_kind_api_version(from, version)),
                              slice_from_text(from->kind), &b->why));
    TRY(buf_append_text(&b->why, " "));
    return buf_append(&b->why, why);
}

/* A call has ended, and what it has answered is checked. */
static void count_call(const struct kube_conversion_batch *b)
{
    int64_t now_ns = loop_now_ns(b->api->loop);
    kube_conversion_metrics_call(kube_counter_conversions(&b->api->counter),
                                 &(struct kube_conversion_count){
                                     .definition = b->definition->name,
                                     .from = first_sent(b)->from->kind.version,
                                     .to = b->to->kind.version,
                                     .failure = b->failure,
                                     .impatient = b->failure == CONVERSION_CALL_FAILED &&
                                                  now_ns >= b->deadline_ns &&
                                                  b->timeout_ns < KUBE_CONVERSION_NS,
                                     .elapsed_ns = now_ns - b->started_ns,
                                 });
}

/* Asks for half of the objects. False: there was one. */
static bool halve(struct kube_conversion_batch *b)
{
    if (b->sent <= 1)
        return false;
    b->most = (b->end - b->at) / 2;
    go_on(b);
    return true;
}

static void on_called(struct kube_webhook_call *call)
{
    struct kube_conversion_batch *b = call->owner;
    AUTO(buf_fini) struct buf why = {0};
    if (call->status == ST_OK) {
        STATE_MOVE(b->state, moves, READING);
        work(b, call->answer.len);
        return;
    }
    /* The answer is too long, or the account has no room for it. */
    if ((call->status == ST_LIMIT || call->status == ST_NOMEM) && halve(b))
        return;
    if (call->status == ST_REQUEST_TOO_MANY_REQUESTS || call->status == ST_STOPPED ||
        call->status == ST_NOMEM) {
        fail(b, call->status);
        return;
    }
    b->failure = CONVERSION_CALL_FAILED;
    count_call(b);
    if (buf_append_text(&why, "failed: ") == ST_OK &&
        buf_append(&why, buf_slice(&call->error)) == ST_OK && explain(b, buf_slice(&why)) == ST_OK)
        fail_by_text(b);
    else
        fail(b, ST_NOMEM);
}

/* -- Reading -- */

/* Kubernetes' writers put these first. */
static enum status order(struct arena *arena, struct json_node *object)
{
    static const char *const names[] = {"metadata", "apiVersion", "kind"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TRY(json_node_set_first(arena, object, slice_from_text(names[i]),
                                json_node_named(object, names[i])));
    return ST_OK;
}

/* Checks the answer to an object, and appends it. */
static enum status take_object(struct kube_conversion_batch *b, struct arena *arena,
                               const struct object *object, struct json_node *converted,
                               struct buf *to)
{
    struct kube_object parsed;
    struct json_node *metadata = NULL;
    struct error error;
    struct slice json = json_of(b, object);
    const struct schema *schema = kube_custom_schema((struct kube_custom *)(uintptr_t)b->to);
    if (kube_object_parse(json, &parsed) != ST_OK)
        return ST_MALFORMED;
    TRY(json_tree_read(arena, parsed.metadata, &metadata, &error));
    const struct conversion_original original = {parsed.api_version, parsed.kind, metadata};
    TRY(conversion_check(arena, &original, slice_from_text(b->version), converted, &b->why));
    if (schema)
        TRY(schema_prune(schema, converted, true, NULL));
    TRY(order(arena, converted));
    return json_tree_write(converted, to);
}

static enum status take_objects(struct kube_conversion_batch *b, struct arena *arena,
                                struct json_node *objects, struct block *block)
{
    struct json_node *converted = json_node_first(objects), *next;
    size_t charged = 0;
    for (size_t i = b->at; i < b->end; i++, converted = next) {
        struct object *object = &b->objects[i];
        next = converted;
        if (!object->from)
            continue;
        next = json_node_next(converted);
        size_t from = block->bytes.len;
        enum status status = take_object(b, arena, object, converted, &block->bytes);
        if (status == ST_INVALID)
            b->failure = CONVERSION_INVALID_OBJECT;
        TRY(account_follow(b->account, &block->bytes, &charged));
        TRY(status);
        /* The bytes may move until the last one is written. */
        object->converted = slice_of(NULL, block->bytes.len - from);
    }
    return ST_OK;
}

static void place_objects(struct kube_conversion_batch *b, const struct block *block)
{
    size_t at = 0;
    for (size_t i = b->at; i < b->end; i++) {
        if (!b->objects[i].from)
            continue;
        b->objects[i].converted = slice_of(block->bytes.ptr + at, b->objects[i].converted.len);
        at += b->objects[i].converted.len;
    }
}

static enum status read_in(struct kube_conversion_batch *b, struct arena *arena)
{
    const struct conversion_review review = {b->definition->webhook.review_version,
                                             slice_from_text(b->uid), slice_from_text(b->version)};
    AUTO(buf_fini) struct buf why = {0};
    struct json_node *objects;
    enum status status = conversion_review_read(arena, &review, buf_slice(&b->call.answer), b->sent,
                                                &objects, &why, &b->failure);
    if (status == ST_INVALID)
        return explain(b, buf_slice(&why)) == ST_OK ? ST_INVALID : ST_NOMEM;
    TRY(status);
    struct block *block = xcalloc(1, sizeof(*block));
    block->next = b->blocks;
    b->blocks = block;
    TRY(take_objects(b, arena, objects, block));
    place_objects(b, block);
    return ST_OK;
}

static enum status read_answer(struct kube_conversion_batch *b)
{
    struct arena arena;
    buf_reset(&b->why, SIZE_MAX);
    arena_init(&arena, NULL, 0, KUBE_CONVERSION_TREE_BYTES);
    arena_charge(&arena, b->account);
    enum status status = read_in(b, &arena);
    /* Else the account has refused it, or there is no memory at all. */
    if (status == ST_NOMEM && arena.held_bytes > KUBE_CONVERSION_TREE_BYTES / 2)
        status = ST_LIMIT;
    arena_fini(&arena);
    return status;
}

static void on_read(struct kube_conversion_batch *b, enum status status)
{
    if (status == ST_OK || status == ST_INVALID)
        count_call(b);
    if (status == ST_OK) {
        b->at = b->end;
        go_on(b);
    } else if (status == ST_INVALID) {
        fail_by_text(b);
    } else if (status == ST_MALFORMED) {
        kube_fail_stored(&b->status);
        finish(b);
    } else if ((status == ST_NOMEM || status == ST_LIMIT) && halve(b)) {
        return; /* half of the objects may take little enough memory */
    } else if (status == ST_LIMIT) {
        b->failure = CONVERSION_MALFORMED;
        count_call(b);
        if (explain(b, SLICE_LITERAL("failed: the answer takes too much memory")) == ST_OK)
            fail_by_text(b);
        else
            fail(b, ST_NOMEM);
    } else {
        fail(b, status);
    }
}

/* -- Beginning -- */

/* The reason why no call can be made. */
static enum status find_fault(struct kube_conversion_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct kube_object object;
        if (b->objects[i].from != &no_version)
            continue;
        TRY(kube_object_parse_head(json_of(b, &b->objects[i]), &object));
        b->failure = CONVERSION_INVALID_OBJECT;
        return buf_append_format(&b->why,
                                 "request to convert CR from an invalid group/version: %.*s",
                                 SLICE_ARGS(object.api_version));
    }
    b->at = 0;
    if (!kube_conversion_batch_awaits(b))
        return ST_OK;
    if (!b->definition->webhook.review_version)
        return buf_append_text(&b->why, "no supported conversion review versions");
    if (!b->definition->webhook.target)
        return explain(b, SLICE_LITERAL("failed: the configuration of the webhook is not valid"));
    return ST_OK;
}

void kube_conversion_batch_limit(struct kube_conversion_batch *b, int64_t timeout_ns)
{
    assert(b->state == GATHERING);
    b->timeout_ns = timeout_ns < KUBE_CONVERSION_NS ? timeout_ns : KUBE_CONVERSION_NS;
}

void kube_conversion_batch_start(struct kube_conversion_batch *b,
                                 void (*done)(struct kube_conversion_batch *batch), void *owner)
{
    assert(b->state == GATHERING);
    b->done = done;
    b->owner = owner;
    b->most = SIZE_MAX;
    b->deadline_ns = clock_add(loop_now_ns(b->api->loop), b->timeout_ns);
    enum status status = find_fault(b);
    if (status != ST_OK)
        fail(b, status);
    else if (b->why.len)
        fail_by_text(b);
    else
        go_on(b);
}
