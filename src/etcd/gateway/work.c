#include "etcd/gateway/work.h"

#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "codec/json/scanner.h"
#include "io/worker.h"

#include <stdlib.h>

struct gateway_desk {
    struct mailbox back;
    struct worker *worker; /* borrowed */
    size_t away;           /* not come back */
};

/* While it is away, the order's type, many and json, and all below, are the worker's. */
struct gateway_work {
    struct worker_job job;
    bool away, dropped;
    size_t charged_bytes;
    struct gateway_order order; /* with a copy of its json, and a reference to its account */
    struct buf messages;        /* each behind its length, a uint32_t */
    size_t messages_at;         /* those before were taken */
    enum status status;         /* what comes behind them */
    char error[PB_JSON_ERROR_BYTES];
};

/* -- From JSON to messages -- */

enum status gateway_json_take(const struct pb_message *type, struct slice *json,
                              struct buf *message, char error[PB_JSON_ERROR_BYTES])
{
    struct json_scanner scanner;
    struct slice value;
    _Static_assert((int)JSON_FAULT_TEXT_BYTES <= (int)PB_JSON_ERROR_BYTES, "texts fit");
    json_scanner_init(&scanner, *json);
    if (!json_next_value(&scanner, &value)) {
        char text[JSON_FAULT_TEXT_BYTES];
        const char *words = json_fault_text(&scanner, text);
        memcpy(error, words, strlen(words) + 1);
        return scanner.fault == JSON_EMPTY ? ST_END : ST_INVALID;
    }
    size_t used = (size_t)(scanner.at - scanner.start);
    *json = slice_sub(*json, used, json->len - used);
    return pb_json_read(type, value, message, error);
}

static enum status add_message(struct gateway_work *work, struct slice *json)
{
    struct buf *messages = &work->messages;
    size_t before = messages->len;
    uint32_t len = 0;
    TRY(buf_append(messages, slice_of(&len, sizeof(len))));
    enum status status = gateway_json_take(work->order.type, json, messages, work->error);
    if (status != ST_OK) {
        messages->len = before;
        return status;
    }
    len = (uint32_t)(messages->len - before - sizeof(len));
    memcpy(messages->ptr + before, &len, sizeof(len));
    return ST_OK;
}

static void run(struct worker_job *job)
{
    struct gateway_work *work = CONTAINER_OF(job, struct gateway_work, job);
    struct slice json = work->order.json;
    do
        work->status = add_message(work, &json);
    while (work->status == ST_OK && work->order.many);
}

/* -- There and back -- */

static void work_free(struct gateway_work *work)
{
    buf_fini(&work->messages);
    free((uint8_t *)(uintptr_t)work->order.json.ptr);
    account_release(work->order.account, work->charged_bytes);
    account_unref(work->order.account);
    free(work);
}

static void on_back(void *owner, struct mailbox_node *node)
{
    struct gateway_desk *desk = owner;
    struct gateway_work *work = CONTAINER_OF(node, struct gateway_work, job.in_mailbox);
    desk->away--;
    work->away = false;
    if (work->dropped)
        work_free(work);
    else
        work->order.done(work->order.owner, work->job.status);
}

struct gateway_desk *gateway_desk_new(struct loop *loop, struct worker *worker)
{
    size_t bytes = align_up(sizeof(struct gateway_desk), 64);
    struct gateway_desk *desk = xalloc_check(aligned_alloc(64, bytes), bytes);
    memset(desk, 0, sizeof(*desk));
    desk->worker = worker;
    mailbox_attach(&desk->back, loop, on_back, desk);
    return desk;
}

void gateway_desk_free(struct gateway_desk *desk)
{
    if (!desk)
        return;
    assert(desk->away == 0);
    worker_leave(desk->worker, &desk->back);
    mailbox_detach(&desk->back);
    free(desk);
}

bool gateway_desk_busy(const struct gateway_desk *desk)
{
    return desk && desk->away > 0;
}

/* Messages are no longer than their JSON but for their lengths, and a value has two bytes. */
static size_t messages_bytes_max(const struct gateway_order *order)
{
    size_t values = order->many ? order->json.len / 2 + 1 : 1;
    return order->json.len + values * sizeof(uint32_t);
}

/* With all the memory that it takes: the worker needs no more. */
static enum status work_new(const struct gateway_order *order, struct gateway_work **ret_work)
{
    size_t json_bytes = order->json.len, messages_bytes = messages_bytes_max(order);
    if (!account_charge(order->account, json_bytes + messages_bytes))
        return ST_NOMEM;
    struct gateway_work *work = xcalloc(1, sizeof(*work));
    uint8_t *json = malloc(json_bytes);
    work->order = *order;
    work->order.json = slice_of(json, json_bytes);
    work->messages = (struct buf){.ptr = malloc(messages_bytes), .capacity = messages_bytes};
    work->charged_bytes = json_bytes + messages_bytes;
    account_ref(order->account);
    if (!json || !work->messages.ptr) {
        work_free(work);
        return ST_NOMEM;
    }
    slice_copy(json, order->json);
    *ret_work = work;
    return ST_OK;
}

enum status gateway_work_start(struct gateway_desk *desk, const struct gateway_order *order,
                               struct gateway_work **ret_work)
{
    struct gateway_work *work;
    TRY(work_new(order, &work));
    work->job =
        (struct worker_job){.answers = &desk->back, .run = run, .share = (uintptr_t)order->account};
    work->away = true;
    enum status status = worker_submit(desk->worker, &work->job);
    if (status != ST_OK) {
        work_free(work);
        return status;
    }
    desk->away++;
    *ret_work = work;
    return ST_OK;
}

enum status gateway_work_next(struct gateway_work *work, struct slice *ret_message,
                              char error[PB_JSON_ERROR_BYTES])
{
    uint32_t len;
    assert(!work->away);
    if (work->messages_at == work->messages.len) {
        memcpy(error, work->error, sizeof(work->error));
        return work->status;
    }
    memcpy(&len, work->messages.ptr + work->messages_at, sizeof(len));
    *ret_message = slice_of(work->messages.ptr + work->messages_at + sizeof(len), len);
    work->messages_at += sizeof(len) + len;
    return ST_OK;
}

void gateway_work_drop(struct gateway_work *work)
{
    if (!work)
        return;
    if (!work->away) {
        work_free(work);
        return;
    }
    work->dropped = true;
    atomic_store_explicit(&work->job.given_up, true, memory_order_relaxed);
}
