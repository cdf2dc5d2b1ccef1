#include "etcd/gateway/offload.h"

#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "codec/json/scanner.h"
#include "io/loop.h"
#include "io/worker.h"

#include <stdlib.h>

struct gateway_offload {
    struct mailbox back;
    struct worker *worker; /* borrowed */
    size_t away;           /* jobs that are with the worker */
};

/* While it is away, the worker uses the type, many and json of the input, and all fields after it.
 */
struct gateway_parse {
    struct worker_job job;
    bool away, dropped;
    size_t charged_bytes;
    struct gateway_parse_input input; /* with a copy of its json, and a reference to its account */
    struct buf messages;              /* each preceded by its length, a uint32_t */
    size_t messages_at;               /* earlier ones were returned */
    enum status status;               /* returned after the last message */
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

static enum status add_message(struct gateway_parse *parse, struct slice *json)
{
    struct buf *messages = &parse->messages;
    size_t before = messages->len;
    uint32_t len = 0;
    TRY(buf_append(messages, slice_of(&len, sizeof(len))));
    enum status status = gateway_json_take(parse->input.type, json, messages, parse->error);
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
    struct gateway_parse *parse = CONTAINER_OF(job, struct gateway_parse, job);
    struct slice json = parse->input.json;
    do
        parse->status = add_message(parse, &json);
    while (parse->status == ST_OK && parse->input.many);
}

/* -- The worker -- */

static void parse_free(struct gateway_parse *parse)
{
    buf_fini(&parse->messages);
    free((uint8_t *)(uintptr_t)parse->input.json.ptr);
    account_release(parse->input.account, parse->charged_bytes);
    account_unref(parse->input.account);
    free(parse);
}

static void on_back(void *owner, struct mailbox_node *node)
{
    struct gateway_offload *offload = owner;
    struct gateway_parse *parse = CONTAINER_OF(node, struct gateway_parse, job.in_mailbox);
    offload->away--;
    parse->away = false;
    if (parse->dropped)
        parse_free(parse);
    else
        parse->input.done(parse->input.owner, parse->job.status);
}

struct gateway_offload *gateway_offload_new(struct loop *loop, struct worker *worker)
{
    size_t bytes = align_up(sizeof(struct gateway_offload), 64);
    struct gateway_offload *offload = xalloc_check(aligned_alloc(64, bytes), bytes);
    memset(offload, 0, sizeof(*offload));
    offload->worker = worker;
    loop_attach(loop, &offload->back, on_back, offload);
    return offload;
}

void gateway_offload_free(struct gateway_offload *offload)
{
    if (!offload)
        return;
    assert(offload->away == 0);
    worker_leave(offload->worker, &offload->back);
    mailbox_detach(&offload->back);
    free(offload);
}

bool gateway_offload_busy(const struct gateway_offload *offload)
{
    return offload && offload->away > 0;
}

/* A message without its length is never longer than its JSON, and a value has at least two bytes.
 */
static size_t messages_bytes_max(const struct gateway_parse_input *input)
{
    size_t values = input->many ? input->json.len / 2 + 1 : 1;
    return input->json.len + values * sizeof(uint32_t);
}

/* Allocates and charges all memory that the worker will need. */
static enum status parse_new(const struct gateway_parse_input *input,
                             struct gateway_parse **ret_parse)
{
    size_t json_bytes = input->json.len, messages_bytes = messages_bytes_max(input);
    if (!account_charge(input->account, json_bytes + messages_bytes))
        return ST_NOMEM;
    struct gateway_parse *parse = xcalloc(1, sizeof(*parse));
    uint8_t *json = malloc(json_bytes);
    parse->input = *input;
    parse->input.json = slice_of(json, json_bytes);
    parse->messages = (struct buf){.ptr = malloc(messages_bytes), .capacity = messages_bytes};
    parse->charged_bytes = json_bytes + messages_bytes;
    account_ref(input->account);
    if (!json || !parse->messages.ptr) {
        parse_free(parse);
        return ST_NOMEM;
    }
    slice_copy(json, input->json);
    *ret_parse = parse;
    return ST_OK;
}

enum status gateway_parse_start(struct gateway_offload *offload,
                                const struct gateway_parse_input *input,
                                struct gateway_parse **ret_parse)
{
    struct gateway_parse *parse;
    TRY(parse_new(input, &parse));
    parse->job = (struct worker_job){.answers = &offload->back,
                                     .run = run,
                                     .group = wire_peer_key(input->peer),
                                     .share = (uintptr_t)input->account};
    parse->away = true;
    enum status status = worker_submit(offload->worker, &parse->job);
    if (status != ST_OK) {
        parse_free(parse);
        return status;
    }
    offload->away++;
    *ret_parse = parse;
    return ST_OK;
}

enum status gateway_parse_next(struct gateway_parse *parse, struct slice *ret_message,
                               char error[PB_JSON_ERROR_BYTES])
{
    uint32_t len;
    assert(!parse->away);
    if (parse->messages_at == parse->messages.len) {
        memcpy(error, parse->error, sizeof(parse->error));
        return parse->status;
    }
    memcpy(&len, parse->messages.ptr + parse->messages_at, sizeof(len));
    *ret_message = slice_of(parse->messages.ptr + parse->messages_at + sizeof(len), len);
    parse->messages_at += sizeof(len) + len;
    return ST_OK;
}

void gateway_parse_drop(struct gateway_parse *parse)
{
    if (!parse)
        return;
    if (!parse->away) {
        parse_free(parse);
        return;
    }
    parse->dropped = true;
    atomic_store_explicit(&parse->job.given_up, true, memory_order_relaxed);
}
