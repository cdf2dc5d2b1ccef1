#include "clients.h"

#include "actors.h"
#include "base/xalloc.h"
#include "faults.h"
#include "front.h"
#include "leases.h"
#include "machine.h"
#include "maintenance.h"
#include "operations.h"
#include "plants.h"
#include "rights.h"
#include "tls.h"
#include "trace.h"
#include "watchers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 8, LARGE_BYTES = 3000, KEYS_OF_ROOM = 4 };

static const char *const rooms[] = {"a/", "b/", "c/"};

struct client {
    unsigned number;
    const char *user;
    bool asks_front; /* the server in front, or either */
    struct random random;
    vigil_client *client; /* owned */
    struct actor *actor;
    unsigned puts;
};

static struct {
    const struct plan *plan;
    struct client all[CLIENTS_MAX];
    unsigned count;
} clients;

/* -- Running calls -- */

vigil_client *client_connect(const char *user, const char *endpoints)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_options_init(&options);
    options.endpoints = sim_tls_endpoint(endpoints);
    options.ca_file = sim_tls_ca_file();
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
    if (plant_is(PLANT_LATE_PING) && strstr(error->text, "ping not acked"))
        op->answer = ANSWER_REFUSED;
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
    op->permitted = rights_granted(&op->rights);
    op->forbidden = rights_refused(&op->rights);
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
    snprintf(op->key, KEY_BYTES, "%s%u", room, (unsigned)below(c, KEYS_OF_ROOM));
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

static void judge(const struct client *c, struct operation *op)
{
    op->rights = rights_look(rights_for(c->user, op->key, op->end), 0);
}

/* A server in front uses what it knows of rights for a second; writes are judged by the one behind.
 */
static void judge_read(const struct client *c, struct operation *op)
{
    op->rights = rights_look(rights_for(c->user, op->key, op->end), c->asks_front ? NS_PER_S : 0);
}

static void do_range(struct client *c)
{
    struct operation *op = operation_new(OPERATION_RANGE, c->number);
    vigil_range_request request;
    choose_range(c, op);
    judge_read(c, op);
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
    for (size_t i = 0, at = strlen(value); i < len; i++)
        value[at + i] = (char)('a' + (i / 64 + i) % 26); /* sectors differ */
    struct version shown;
    version_set_value(&shown, value, strlen(value));
    memcpy(op->value, shown.value, VALUE_BYTES);
    return value;
}

static int64_t choose_lease(struct client *c)
{
    if (!leases_count() || below(c, 3) != 0)
        return 0;
    return leases_at((unsigned)below(c, leases_count()));
}

static void do_put(struct client *c)
{
    struct operation *op = operation_new(OPERATION_PUT, c->number);
    vigil_put_request request;
    choose_key(c, op);
    judge(c, op);
    op->lease = choose_lease(c);
    if (is_limited(c) && op->lease && op->rights.right != RIGHT_NEVER)
        op->rights.right = RIGHT_EITHER; /* the lease may have keys of others */
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

/* Another key of the same room. */
static vigil_txn *make_inner(struct client *c, struct operation *op)
{
    snprintf(op->inner_key, KEY_BYTES, "%.2s%u", op->key,
             (unsigned)(op->key[2] - '0' + 1) % KEYS_OF_ROOM);
    snprintf(op->inner_value, VALUE_BYTES, "%u-%u inner", c->number, c->puts);
    vigil_txn *inner = vigil_txn_new(c->client);
    vigil_txn_if_create_revision(inner, vigil_text(op->inner_key), VIGIL_EQUAL, 0);
    vigil_txn_put(inner, vigil_text(op->inner_key), vigil_text(op->inner_value), 0);
    vigil_txn_else(inner);
    vigil_txn_delete(inner, vigil_text(op->inner_key));
    return inner;
}

/* If the key has the revision that this client believes, it is put, in some cases with another
 * transaction; otherwise it is read. */
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
    vigil_txn *inner = below(c, 3) == 0 ? make_inner(c, op) : NULL;
    if (inner)
        vigil_txn_nest(txn, inner);
    vigil_txn_free(inner);
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
        else if (*op->inner_key)
            op->inner_succeeded = result->responses[1].as.txn->succeeded;
    }
    finish(op, call);
    free(value);
}

static void do_grant(struct client *c)
{
    struct operation *op = operation_new(OPERATION_GRANT, c->number);
    op->ttl = below(c, 2) ? 2 : 2 + (int64_t)below(c, CLIENTS_TTL_MAX_S - 1);
    op->lease = 1000 + op->number;
    leases_grant(op->lease, op->ttl);
    vigil_call *call = vigil_lease_grant(c->client, op->ttl, op->lease);
    run(op, call);
    if (op->answer == ANSWER_OK && vigil_lease_grant_result(call)->ttl != op->ttl)
        violation("lease %lld has another time to live", (long long)op->lease);
    if (op->answer == ANSWER_OK)
        leases_granted(op->lease);
    if (op->answer == ANSWER_OK && below(c, 2))
        leases_keep(c->client, op->lease);
    finish(op, call);
}

static void do_revoke(struct client *c)
{
    if (!leases_count())
        return;
    struct operation *op = operation_new(OPERATION_REVOKE, c->number);
    op->lease = leases_at((unsigned)below(c, leases_count()));
    leases_revoke(op->lease);
    vigil_call *call = vigil_lease_revoke(c->client, op->lease);
    run(op, call);
    finish(op, call);
}

static void do_unlock(struct client *c, const char *key)
{
    struct operation *op = operation_new(OPERATION_DELETE, c->number);
    snprintf(op->key, KEY_BYTES, "%s", key);
    vigil_call *call = vigil_unlock(c->client, vigil_text(op->key));
    run(op, call);
    if (op->answer == ANSWER_OK)
        op->answer = ANSWER_UNKNOWN; /* whether the key still existed */
    finish(op, call);
}

/* Takes the lock and gives it back, unless the lease ends before. */
static void do_lock(struct client *c)
{
    if (!leases_count())
        return;
    struct operation *op = operation_new(OPERATION_LOCK, c->number);
    op->lease = leases_at((unsigned)below(c, leases_count()));
    vigil_call *call = vigil_lock(c->client, vigil_text("lock"), op->lease);
    vigil_call_set_timeout(call, 2000);
    run(op, call);
    if (op->answer == ANSWER_OK) {
        vigil_bytes key = vigil_lock_result(call)->key;
        snprintf(op->key, KEY_BYTES, "%.*s", (int)key.size, (const char *)key.data);
    }
    finish(op, call);
    if (op->answer != ANSWER_OK)
        return;
    actor_sleep((int64_t)below(c, 500 * NS_PER_MS));
    do_unlock(c, op->key);
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
                               .may_be_denied = where.rights.right != RIGHT_ALWAYS,
                               .asks_front = c->asks_front,
                           });
}

/* This user comes and goes, with all watches. */
static bool is_bob(const struct client *c)
{
    return c->user && strcmp(c->user, "bob") == 0;
}

static bool is_root(const struct client *c)
{
    return c->user && strcmp(c->user, "root") == 0;
}

static void do_one(struct client *c)
{
    const bool *on = clients.plan->on;
    uint64_t dice = below(c, 100);
    if (is_root(c) && below(c, 8) == 0)
        rights_change(c->client, (enum right)below(c, RIGHT_ALWAYS));
    else if (dice < 8 && on[SWITCH_LEASES])
        do_grant(c);
    else if (dice < 10 && on[SWITCH_LEASES] && !is_limited(c))
        do_revoke(c);
    else if (dice < 15 && on[SWITCH_COMPACTION] && !is_limited(c))
        do_compact(c);
    else if (dice < 17 && on[SWITCH_MAINTENANCE] && !is_limited(c))
        maintenance_do(c->client, &c->random);
    else if (dice < 20 && on[SWITCH_WATCHES] && !is_bob(c))
        do_watch(c);
    else if (dice < 24 && on[SWITCH_LEASES] && !is_limited(c))
        do_lock(c);
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
    leases_begin(plan->on[SWITCH_AUTH]    ? RENEWALS_NONE
                 : plan->on[SWITCH_FRONT] ? RENEWALS_BEHIND
                                          : RENEWALS_DECODED);
    for (unsigned i = 0; i < clients.count; i++) {
        struct client *c = &clients.all[i];
        *c = (struct client){.number = i + 1};
        if (plan->on[SWITCH_AUTH])
            c->user = i == 0 ? "alice" : i == 1 && clients.count > 2 ? "bob" : "root";
        random_init(&c->random, plan->seed * CLIENTS_MAX + i);
        const char *endpoints =
            front_endpoints(plan->on[SWITCH_FRONT], i + (unsigned)(plan->seed / 4));
        c->asks_front = strcmp(endpoints, MACHINE_ENDPOINT) != 0;
        c->client = client_connect(c->user, endpoints);
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

void clients_enable_auth(void)
{
    vigil_client *client = client_connect(NULL, MACHINE_ENDPOINT);
    rights_begin(client);
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
        op->rights.right = RIGHT_ALWAYS;
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
        if (faults_have_rotted_behind() && operation_met_damage(op))
            return 0;
        actor_sleep(NS_PER_S);
    }
    violation("all keys cannot be read although nothing is wrong any more");
}
