#include "clients.h"

#include "actors.h"
#include "base/xalloc.h"
#include "faults.h"
#include "front.h"
#include "machine.h"
#include "operations.h"
#include "plants.h"
#include "trace.h"
#include "watchers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 8, LEASES_MAX = 64, LARGE_BYTES = 3000 };

static const char *const rooms[] = {"a/", "b/", "c/"};

struct client {
    unsigned number;
    const char *user;
    struct random random;
    vigil_client *client; /* owned */
    struct actor *actor;
    unsigned puts;
};

static struct {
    const struct plan *plan;
    struct client all[CLIENTS_MAX];
    unsigned count;
    int64_t leases[LEASES_MAX];
    unsigned lease_count;
} clients;

/* -- Running calls -- */

vigil_client *client_connect(const char *user, const char *endpoints)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_options_init(&options);
    options.endpoints = endpoints;
    options.user = user;
    options.password = user;
    options.call_timeout_ms = strcmp(endpoints, MACHINE_ENDPOINT) == 0 ? 3000 : 12000;
    options.keepalive_ms = plant_is(PLANT_SILENCE) ? 0 : 1000;
    options.keepalive_timeout_ms = 1000;
    options.connect_timeout_ms = 1000;
    options.backoff_max_ms = 500;
    int code = vigil_client_new(&options, &client, &error);
    if (code != VIGIL_OK)
        violation("a client cannot be created: %s", error.text);
    return client;
}

static void take_error(struct operation *op, const vigil_call *call)
{
    const vigil_error *error = vigil_call_error(call);
    op->code = error->code;
    snprintf(op->text, sizeof(op->text), "%.60s", error->text);
    op->answer = error->code == VIGIL_OK           ? ANSWER_OK
                 : error->outcome == VIGIL_UNKNOWN ? ANSWER_UNKNOWN
                                                   : ANSWER_REFUSED;
    const vigil_header *header = vigil_call_header(call);
    if (header)
        op->header_revision = header->revision;
}

static void take_kvs(struct operation *op, const vigil_kv *kvs, size_t count)
{
    op->versions = xcalloc(count + 1, sizeof(*op->versions));
    for (size_t i = 0; i < count; i++)
        op->versions[i] = version_of(&kvs[i]);
    op->version_count = count;
}

static void take_range(struct operation *op, const vigil_range_response *range)
{
    take_kvs(op, range->kvs, range->kv_count);
    op->count = range->count;
    op->more = range->more;
}

static void run(struct operation *op, vigil_call *call)
{
    (void)vigil_call_run(call);
    take_error(op, call);
}

static void finish(struct operation *op, vigil_call *call)
{
    vigil_call_free(call);
    operation_done(op);
}

/* -- Requests -- */

static uint64_t below(struct client *c, uint64_t n)
{
    return random_below(&c->random, n);
}

static void choose_key(struct client *c, struct operation *op)
{
    const char *room = rooms[below(c, COUNT_OF(rooms))];
    snprintf(op->key, KEY_BYTES, "%s%u", room, (unsigned)below(c, 4));
}

/* A key or all keys of a room, or some rooms. */
static void choose_range(struct client *c, struct operation *op)
{
    choose_key(c, op);
    if (below(c, 3) == 0)
        return;
    snprintf(op->key, KEY_BYTES, "%s", rooms[below(c, COUNT_OF(rooms))]);
    snprintf(op->end, KEY_BYTES, "%c0", op->key[0]);
    if (below(c, 4) == 0)
        snprintf(op->end, KEY_BYTES, "z");
}

static bool is_limited(const struct client *c)
{
    return c->user && strcmp(c->user, "root") != 0;
}

/* Unlike root, alice may only use room a. */
static void judge(const struct client *c, struct operation *op)
{
    bool inside = op->key[0] == 'a' && (!*op->end || strcmp(op->end, "a0") == 0);
    op->forbidden = is_limited(c) && !inside;
    op->permitted = !op->forbidden;
}

static void do_range(struct client *c)
{
    struct operation *op = operation_new(OPERATION_RANGE, c->number);
    vigil_range_request request;
    choose_range(c, op);
    judge(c, op);
    op->lags = clients.plan->on[SWITCH_FRONT];
    if (below(c, 3) == 0)
        op->revision = 1 + (int64_t)below(c, (uint64_t)operations_seen());
    if (below(c, 3) == 0)
        op->limit = 1 + (int64_t)below(c, 4);
    vigil_range_request_init(&request);
    request.key = vigil_text(op->key);
    request.range_end = vigil_text(op->end);
    request.revision = op->revision;
    request.limit = op->limit;
    vigil_call *call = vigil_range(c->client, &request);
    run(op, call);
    if (op->answer == ANSWER_OK)
        take_range(op, vigil_range_result(call));
    finish(op, call);
}

/* Unique, and sometimes long. Returns the whole value, to be freed. */
static char *choose_value(struct client *c, struct operation *op)
{
    size_t len = clients.plan->on[SWITCH_LARGE] && below(c, 3) == 0 ? below(c, LARGE_BYTES) : 0;
    char *value = xcalloc(len + 32, 1);
    snprintf(value, 32, "%u-%u.", c->number, c->puts++);
    memset(value + strlen(value), 'x', len);
    struct version shown;
    version_set_value(&shown, value, strlen(value));
    memcpy(op->value, shown.value, VALUE_BYTES);
    return value;
}

static int64_t choose_lease(struct client *c)
{
    if (!clients.lease_count || below(c, 3) != 0)
        return 0;
    return clients.leases[below(c, clients.lease_count)];
}

static void do_put(struct client *c)
{
    struct operation *op = operation_new(OPERATION_PUT, c->number);
    vigil_put_request request;
    choose_key(c, op);
    judge(c, op);
    op->lease = choose_lease(c);
    op->permitted &= !(is_limited(c) && op->lease); /* the lease may have keys of others */
    op->previous = below(c, 2);
    char *value = choose_value(c, op);
    vigil_put_request_init(&request);
    request.key = vigil_text(op->key);
    request.value = vigil_text(value);
    request.lease = op->lease;
    request.prev_kv = op->previous;
    vigil_call *call = vigil_put_with(c->client, &request);
    run(op, call);
    if (op->answer == ANSWER_OK)
        take_kvs(op, vigil_put_result(call)->prev_kv, vigil_put_result(call)->prev_kv ? 1 : 0);
    finish(op, call);
    free(value);
}

static void do_delete(struct client *c)
{
    struct operation *op = operation_new(OPERATION_DELETE, c->number);
    vigil_delete_request request;
    if (below(c, 3) == 0)
        choose_range(c, op);
    else
        choose_key(c, op);
    judge(c, op);
    op->previous = below(c, 2);
    vigil_delete_request_init(&request);
    request.key = vigil_text(op->key);
    request.range_end = vigil_text(op->end);
    request.prev_kv = op->previous;
    vigil_call *call = vigil_delete_with(c->client, &request);
    run(op, call);
    if (op->answer == ANSWER_OK) {
        const vigil_delete_response *result = vigil_delete_result(call);
        take_kvs(op, result->prev_kvs, result->prev_kv_count);
        op->count = result->deleted;
    }
    finish(op, call);
}

/* If the key has the revision that this client believes, it is put; otherwise it is read. */
static void do_txn(struct client *c)
{
    struct operation *op = operation_new(OPERATION_TXN, c->number);
    choose_key(c, op);
    judge(c, op);
    const struct version *known = history_get(op->key, history_revision());
    op->compared = known && below(c, 4) ? known->revision : 0;
    char *value = choose_value(c, op);
    vigil_txn *txn = vigil_txn_new(c->client);
    vigil_txn_if_mod_revision(txn, vigil_text(op->key), VIGIL_EQUAL, op->compared);
    vigil_txn_put(txn, vigil_text(op->key), vigil_text(value), 0);
    vigil_txn_else(txn);
    vigil_txn_get(txn, vigil_text(op->key));
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    run(op, call);
    if (op->answer == ANSWER_OK) {
        const vigil_txn_response *result = vigil_txn_result(call);
        op->succeeded = result->succeeded;
        if (!op->succeeded)
            take_range(op, result->responses[0].as.range);
    }
    finish(op, call);
    free(value);
}

static void do_grant(struct client *c)
{
    struct operation *op = operation_new(OPERATION_GRANT, c->number);
    op->ttl = 2 + (int64_t)below(c, CLIENTS_TTL_MAX_S - 1);
    op->lease = 1000 + op->number;
    vigil_call *call = vigil_lease_grant(c->client, op->ttl, op->lease);
    run(op, call);
    if (op->answer == ANSWER_OK && vigil_lease_grant_result(call)->ttl != op->ttl)
        violation("lease %lld has another time to live", (long long)op->lease);
    if (op->answer == ANSWER_OK && clients.lease_count < LEASES_MAX)
        clients.leases[clients.lease_count++] = op->lease;
    finish(op, call);
}

static void do_revoke(struct client *c)
{
    if (!clients.lease_count)
        return;
    struct operation *op = operation_new(OPERATION_REVOKE, c->number);
    op->lease = clients.leases[below(c, clients.lease_count)];
    vigil_call *call = vigil_lease_revoke(c->client, op->lease);
    run(op, call);
    finish(op, call);
}

/* Never what the auditor has not seen. */
static void do_compact(struct client *c)
{
    struct operation *op = operation_new(OPERATION_COMPACT, c->number);
    int64_t newest = history_revision(), back = (int64_t)below(c, 20);
    op->revision = newest > back + 1 ? newest - back : 1;
    operations_want_compaction(op->revision);
    vigil_call *call = vigil_compact(c->client, op->revision, (int)below(c, 2));
    run(op, call);
    finish(op, call);
}

static void do_watch(struct client *c)
{
    struct operation where = {0};
    choose_range(c, &where);
    judge(c, &where);
    int64_t back = (int64_t)below(c, 30), newest = operations_seen();
    watcher_new(c->client, &(struct watcher_options){
                               .key = where.key,
                               .end = where.end,
                               .revision = below(c, 4) == 0 ? 0
                                           : newest > back  ? newest - back
                                                            : 1,
                               .previous = below(c, 2),
                               .pauses = below(c, 3) == 0,
                               .may_be_denied = where.forbidden,
                           });
}

static void do_one(struct client *c)
{
    const bool *on = clients.plan->on;
    uint64_t dice = below(c, 100);
    if (dice < 8 && on[SWITCH_LEASES])
        do_grant(c);
    else if (dice < 10 && on[SWITCH_LEASES] && !is_limited(c))
        do_revoke(c);
    else if (dice < 15 && on[SWITCH_COMPACTION] && !is_limited(c))
        do_compact(c);
    else if (dice < 20 && on[SWITCH_WATCHES])
        do_watch(c);
    else if (dice < 60)
        do_put(c);
    else if (dice < 70)
        do_delete(c);
    else if (dice < 82)
        do_txn(c);
    else
        do_range(c);
}

static void client_main(void *arg)
{
    struct client *c = arg;
    for (unsigned i = 0; i < clients.plan->operations; i++) {
        if (below(c, 3))
            actor_sleep((int64_t)below(c, 200 * NS_PER_MS));
        do_one(c);
        watchers_resume();
    }
}

void clients_start(const struct plan *plan)
{
    clients.plan = plan;
    clients.count = plan->clients;
    clients.lease_count = 0;
    for (unsigned i = 0; i < clients.count; i++) {
        struct client *c = &clients.all[i];
        *c = (struct client){.number = i + 1};
        if (plan->on[SWITCH_AUTH])
            c->user = i == 0 ? "alice" : "root";
        random_init(&c->random, plan->seed * CLIENTS_MAX + i);
        c->client = client_connect(c->user, front_endpoints(plan->on[SWITCH_FRONT], i));
        c->actor = actor_start("client", client_main, c);
    }
}

void clients_join(void)
{
    for (unsigned i = 0; i < clients.count; i++)
        actor_join(clients.all[i].actor);
}

void clients_free(void)
{
    for (unsigned i = 0; i < clients.count; i++)
        vigil_client_free(clients.all[i].client);
}

/* -- The beginning and the end -- */

static void must_succeed(vigil_call *call)
{
    if (vigil_call_run(call) != VIGIL_OK)
        violation("a call fails although nothing is wrong: %s", vigil_call_error(call)->text);
    vigil_call_free(call);
}

void clients_enable_auth(void)
{
    vigil_client *client = client_connect(NULL, MACHINE_ENDPOINT);
    vigil_permission room = {.type = VIGIL_PERMISSION_READ_WRITE,
                             .key = vigil_text("a/"),
                             .range_end = vigil_text("a0")};
    must_succeed(vigil_user_add(client, "root", "root"));
    must_succeed(vigil_user_add(client, "alice", "alice"));
    must_succeed(vigil_role_add(client, "room"));
    must_succeed(vigil_role_grant(client, "room", &room));
    must_succeed(vigil_role_add(client, "root"));
    must_succeed(vigil_user_grant_role(client, "root", "root"));
    must_succeed(vigil_user_grant_role(client, "alice", "room"));
    must_succeed(vigil_auth_enable(client));
    vigil_client_free(client);
}

int64_t client_read_all(vigil_client *client)
{
    enum { ATTEMPTS_MAX = 15 };
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        struct operation *op = operation_new(OPERATION_RANGE, 0);
        vigil_range_request request;
        snprintf(op->key, KEY_BYTES, " ");
        snprintf(op->end, KEY_BYTES, "~");
        op->permitted = true;
        vigil_range_request_init(&request);
        request.key = vigil_text(op->key);
        request.range_end = vigil_text(op->end);
        vigil_call *call = vigil_range(client, &request);
        run(op, call);
        if (op->answer == ANSWER_OK)
            take_range(op, vigil_range_result(call));
        finish(op, call);
        if (op->answer == ANSWER_OK)
            return op->header_revision;
        if (faults_have_rotted() && op->answer == ANSWER_REFUSED)
            return 0;
        actor_sleep(NS_PER_S);
    }
    violation("all keys cannot be read although nothing is wrong any more");
}
