/* Large requests are processed on the worker: others continue meanwhile, and clients may
 * disconnect. */
#include "base/memory/budget.h"
#include "io/blocked_worker_test.h"
#include "kube/server/bed_test.h"

#include <sched.h>

static struct blocked_worker blocked;

static void begin_with_worker(void)
{
    blocked_worker_init(&blocked);
    bed_worker = blocked.worker;
    begin(3, 50);
}

static void block(size_t waiting)
{
    blocked_worker_block(&blocked, waiting);
}

/* Until everything is answered. */
static void run_all(void)
{
    do {
        run();
        sched_yield();
    } while (kube_api_busy(bed->api) || kube_api_busy(bed->other));
    run();
}

static void unblock(void)
{
    blocked_worker_release(&blocked);
}

static void end_with_worker(void)
{
    run_all();
    end();
    bed_worker = NULL;
    blocked_worker_fini(&blocked);
}

/* A config map that is too large for one turn. */
static char *large(const char *name)
{
    struct buf text = {0};
    assert_int_equal(buf_append_format(&text,
                                       "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                       "\"metadata\":{\"name\":\"%s\"},\"data\":{\"z\":\"\"",
                                       name),
                     ST_OK);
    for (int i = 0; text.len <= 2 * KUBE_WORK_BYTES_MAX; i++)
        assert_int_equal(buf_append_format(&text, ",\"key%d\":\"value\"", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("}}", 3)), ST_OK);
    return (char *)text.ptr;
}

static void create_large(const char *name)
{
    char *body = large(name);
    struct peer *made = send_json("POST", CMS, body);
    run_all();
    assert_answer(made, 201, "\"key7\":\"value\"");
    free(body);
}

/* Every kind of request with a large object or body; each is answered after the worker is released.
 */
static void others_are_answered_meanwhile(void **state)
{
    static const struct {
        const char *method, *path, *type, *body;
    } rows[] = {
        {"POST", CMS, "application/json", NULL},
        {"POST", CMS, "application/yaml", NULL},
        {"PATCH", CMS "/a", "application/merge-patch+json", "{\"data\":{\"n0\":\"v\"}}"},
        {"PATCH", CMS "/a", "application/json-patch+json",
         "[{\"op\":\"add\",\"path\":\"/data/n1\",\"value\":\"v\"}]"},
        {"PATCH", CMS "/a", "application/strategic-merge-patch+json", "{\"data\":{\"n2\":\"v\"}}"},
        {"PATCH", CMS "/a?fieldManager=m", "application/apply-patch+yaml",
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
         "\"data\":{\"n3\":\"v\"}}"},
        {"DELETE", CMS "/gone", "application/json", "{}"},
    };
    (void)state;
    begin_with_worker();
    create_large("a");
    create_large("gone");
    struct peer *peers[COUNT_OF(rows)];
    char *bodies[COUNT_OF(rows)];
    block(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bodies[i] = rows[i].body ? NULL : large(i ? "b1" : "b0");
        peers[i] =
            send(rows[i].method, rows[i].path, rows[i].type, bodies[i] ? bodies[i] : rows[i].body);
    }
    struct peer *yaml = send_with("GET", CMS "/a", "accept", "application/yaml", "");
    struct peer *small = send_json("POST", CMS, "{\"metadata\":{\"name\":\"small\"}}");
    run();
    assert_answer(small, 201, "\"small\"");
    assert_int_equal(yaml->code, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(peers[i]->code, 0);
    unblock();
    run_all();
    assert_answer(yaml, 200, "key7: value\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_answer(peers[i], rows[i].body ? 200 : 201, NULL);
        free(bodies[i]);
    }
    struct peer *got = send_json("GET", CMS "/a", "");
    run_all();
    for (int i = 0; i < 4; i++) {
        char part[32];
        snprintf(part, sizeof(part), "\"n%d\":\"v\"", i);
        assert_answer(got, 200, part);
    }
    end_with_worker();
}

/* A call without a client is freed when it is back; what it had started to write may exist. */
static void clients_may_disconnect_while_their_call_is_on_the_worker(void **state)
{
    (void)state;
    begin_with_worker();
    create_large("a");
    block(0);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        char *body = large(name);
        struct peer *peer = i % 2 ? send_json("POST", CMS, body)
                                  : send("PATCH", CMS "/a", "application/merge-patch+json", body);
        run();
        leave(peer);
        memset(body, 'x', strlen(body)); /* as after a disconnect */
        free(body);
    }
    static const char *const forms[] = {"application/yaml",
                                        "application/json;as=Table;v=v1;g=meta.k8s.io"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct peer *peer = send_with("GET", CMS "/a?includeObject=None", "accept", forms[i], "");
        run();
        assert_int_equal(peer->code, 0);
        leave(peer);
    }
    unblock();
    run_all();
    struct peer *got = send_json("GET", CMS "/a", "");
    run_all();
    assert_answer(got, 200, "\"key7\":\"value\"");
    end_with_worker();
}

/* -- Lists and watches -- */

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define PROTOBUF "application/vnd.kubernetes.protobuf"

enum { OBJECTS = 6 }; /* more than a short list has */

/* Each of them converts large objects: how it is requested, and how each object is recognized in
 * the answer. */
static const struct {
    const char *path, *accept, *part;
} conversions[] = {
    {CMS, TABLE, "\"cells\":[\"o"},
    {CMS "?includeObject=Object", TABLE, "\"key7\":\"value\""},
    {CMS, PROTOBUF, "key7\x12\x05value"},
    {CMS "?watch=1", TABLE, "\"cells\":[\"o"},
    {CMS "?watch=1", PROTOBUF ";stream=watch", "key7\x12\x05value"},
};

static void begin_with_objects(void)
{
    begin_with_worker();
    for (int i = 0; i < OBJECTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "o%d", i);
        create_large(name);
    }
}

static void pull(struct peer *peer)
{
    static uint8_t bytes[1 << 16];
    engine_shard_turn_begin(bed->shard);
    while (http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    engine_shard_turn_end(bed->shard);
}

static size_t count_of(const struct peer *peer, const char *text)
{
    size_t count = 0;
    struct slice rest = buf_slice(&peer->answer);
    for (const uint8_t *at; rest.len && (at = memmem(rest.ptr, rest.len, text, strlen(text)));
         count++)
        rest = slice_of(at + 1, (size_t)(rest.ptr + rest.len - at - 1));
    return count;
}

static void pull_until(struct peer *peer, const char *part, size_t count)
{
    for (int i = 0; i < 1000 && count_of(peer, part) < count; i++) {
        pull(peer);
        run_all();
    }
    assert_int_equal(count_of(peer, part), count);
}

static void lists_and_watches_convert_large_objects_on_the_worker(void **state)
{
    (void)state;
    begin_with_objects();
    for (size_t i = 0; i < COUNT_OF(conversions); i++) {
        block(0);
        struct peer *peer =
            send_with("GET", conversions[i].path, "accept", conversions[i].accept, "");
        for (int turns = 0; turns < 10; turns++) {
            run();
            pull(peer);
        }
        assert_int_equal(count_of(peer, conversions[i].part), 0);
        struct peer *small = send_json("GET", CMS "/none", "");
        run();
        assert_answer(small, 404, NULL);
        unblock();
        run_all();
        pull_until(peer, conversions[i].part, OBJECTS);
        assert_int_equal(peer->code, 200);
    }
    end_with_worker();
}

/* A change, a deletion, and their effect with a selector. */
static void large_live_events_are_converted_on_the_worker(void **state)
{
    (void)state;
    begin_with_objects();
    struct peer *all = send_with("GET", CMS "?watch=1", "accept", TABLE, "");
    struct peer *some = send_with("GET", CMS "?watch=1&labelSelector=a%3Db", "accept", TABLE, "");
    run_all();
    pull_until(all, "\"type\":\"ADDED\"", OBJECTS);
    pull_until(some, "\"type\":\"ADDED\"", 0);
    (void)send_patch(CMS "/o1", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    run_all();
    pull_until(all, "\"type\":\"MODIFIED\"", 1);
    pull_until(some, "\"type\":\"ADDED\"", 1);
    block(0);
    struct peer *gone = send_json("DELETE", CMS "/o1", "");
    run();
    unblock();
    run_all();
    assert_answer(gone, 200, NULL);
    pull_until(all, "\"type\":\"DELETED\"", 1);
    pull_until(some, "\"type\":\"DELETED\"", 1);
    end_with_worker();
}

static void clients_may_disconnect_during_a_conversion(void **state)
{
    (void)state;
    begin_with_objects();
    block(0);
    for (size_t i = 0; i < COUNT_OF(conversions); i++) {
        struct peer *peer =
            send_with("GET", conversions[i].path, "accept", conversions[i].accept, "");
        run();
        pull(peer);
        assert_true(kube_api_busy(bed->api));
        leave(peer);
    }
    unblock();
    run_all();
    end_with_worker();
}

static void requests_beyond_the_queue_of_the_worker_get_429(void **state)
{
    (void)state;
    begin_with_worker();
    block(WORKER_QUEUE_MAX);
    char *body = large("a");
    struct peer *peer = send_json("POST", CMS, body);
    run();
    assert_answer(peer, 429, "too many large requests are under way");
    unblock();
    struct peer *again = send_json("POST", CMS, body);
    run_all();
    assert_answer(again, 201, NULL);
    free(body);
    end_with_worker();
}

/* A group with more calls loses the newest of them to a group with fewer. */
static void calls_lose_their_places_to_connections_with_fewer(void **state)
{
    (void)state;
    begin_with_worker();
    blocked_worker_block(&blocked, 0);
    char *body = large("a");
    struct peer *peers[WORKER_QUEUE_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(peers); i++) {
        peers[i] = send_json("POST", CMS, body);
        run();
    }
    struct worker_job *other = &blocked.jobs[blocked.count++];
    *other = (struct worker_job){
        .answers = blocked.answers, .run = blocked_worker_run_other, .group = blocked.count};
    assert_int_equal(worker_submit(blocked.worker, other), ST_OK);
    unblock();
    run_all();
    size_t made = 0;
    for (size_t i = 0; i < COUNT_OF(peers); i++) {
        made += peers[i]->code == 201;
        if (peers[i]->code != 201) /* another one has created it, or its place was lost */
            assert_int_equal(peers[i]->code, i < WORKER_QUEUE_MAX - 1 ? 409 : 429);
    }
    assert_int_equal(made, 1);
    free(body);
    end_with_worker();
}

static void write_address(void *owner, char *text)
{
    memcpy(text, owner, strlen(owner) + 1);
}

/* One client fills the queue from many connections; the call of another address is accepted. */
static void calls_of_other_addresses_are_accepted(void **state)
{
    static char flooder[] = "192.0.2.1:1", other[] = "192.0.2.2:1";
    (void)state;
    begin_with_worker();
    block(0);
    char *body = large("a"), *late_body = large("late");
    struct account *accounts[WORKER_QUEUE_MAX];
    struct budget *budget;
    assert_int_equal(budget_new(1 << 30, &budget), ST_OK);
    bed->peer = (struct wire_peer){.address = write_address, .owner = flooder};
    for (size_t i = 0; i < WORKER_QUEUE_MAX; i++) {
        assert_int_equal(account_new(budget, &accounts[i]), ST_OK);
        bed->account = accounts[i];
        (void)send_json("POST", CMS, body);
        run();
    }
    bed->account = NULL;
    bed->peer.owner = other;
    struct peer *late = send_json("POST", CMS, late_body);
    run();
    assert_int_equal(late->code, 0);
    unblock();
    run_all();
    assert_answer(late, 201, NULL);
    free(body);
    free(late_body);
    end_with_worker();
    for (size_t i = 0; i < WORKER_QUEUE_MAX; i++)
        account_unref(accounts[i]);
    budget_free(budget);
}

/* After the write the call must not be refused: a client that tries again would write twice. */
static void the_answer_to_a_write_is_not_refused(void **state)
{
    (void)state;
    begin_with_worker();
    struct buf body = {0};
    assert_int_equal(
        buf_append_text(&body, "{\"metadata\":{\"generateName\":\"a\"},\"data\":{\"k\":\""), ST_OK);
    /* What the server adds makes it too large for one turn. */
    while (body.len < KUBE_WORK_BYTES_MAX - 8)
        assert_int_equal(buf_append_text(&body, "v"), ST_OK);
    assert_int_equal(buf_append(&body, slice_of("\"}}", 4)), ST_OK);
    block(WORKER_QUEUE_MAX);
    struct peer *made = send_json("POST", CMS "?pretty=true", (const char *)body.ptr);
    run();
    unblock();
    run_all();
    assert_answer(made, 201, "vvv");
    buf_fini(&body);
    end_with_worker();
}

static void options_of_a_delete_are_short(void **state)
{
    (void)state;
    begin_with_worker();
    char *body = calloc(1, (64 << 10) + 2);
    memset(body, ' ', (64 << 10) + 1);
    struct peer *one = send_json("DELETE", CMS "/a", body);
    struct peer *all = send_json("DELETE", CMS, body);
    run_all();
    assert_answer(one, 413, "at most 65536 bytes");
    assert_answer(all, 413, "at most 65536 bytes");
    free(body);
    end_with_worker();
}

/* -- What the worker makes is charged until it is sent -- */

static struct peer *send_charged(const char *path, const char *accept, struct budget *budget)
{
    assert_int_equal(account_new(budget, &bed->account), ST_OK);
    struct peer *peer = send_with("GET", path, "accept", accept, "");
    bed->account = NULL;
    return peer;
}

static void fill_once(struct peer *peer, size_t room)
{
    uint8_t bytes[4096];
    engine_shard_turn_begin(bed->shard);
    if (http_exchange_flows(&peer->x))
        (void)http_exchange_fill(&peer->x, bytes, size_min(room, sizeof(bytes)));
    engine_shard_turn_end(bed->shard);
    run_all();
}

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

/* Rows of a Table contain the labels of their objects. */
static void store_labelled(const char *name, size_t bytes)
{
    AUTO(buf_fini) struct buf text = {0};
    char key[128];
    snprintf(key, sizeof(key), "/registry/configmaps/default/%s", name);
    assert_int_equal(buf_append_format(&text,
                                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                       "\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
                                       "\"annotations\":{\"a\":\"",
                                       name),
                     ST_OK);
    while (text.len < bytes)
        assert_int_equal(buf_append_text(&text, "value value value value"), ST_OK);
    assert_int_equal(buf_append_text(&text, "\"}}}"), ST_OK);
    store(key, buf_slice(&text));
}

static void what_the_worker_makes_of_a_list_is_charged(void **state)
{
    enum { BYTES = 200 << 10 };
    struct budget *budget;
    (void)state;
    begin_with_worker();
    store_labelled("a", BYTES);
    store_labelled("b", BYTES);
    assert_int_equal(budget_new(64 << 20, &budget), ST_OK);
    struct peer *list = send_charged(CMS, TABLE, budget);
    struct account *account = list->x.account;
    run_all();
    for (int i = 0; i < 3; i++)
        fill_once(list, 4096);
    assert_int_equal(list->code, 200);
    assert_true(account_held_bytes(account) >= BYTES);
    end_with_worker();
    assert_int_equal(account_held_bytes(account), 0);
    account_unref(account);
    budget_free(budget);
}

static void what_the_worker_makes_of_an_event_is_charged(void **state)
{
    enum { BYTES = 200 << 10 };
    struct budget *budget;
    (void)state;
    begin_with_worker();
    assert_int_equal(budget_new(64 << 20, &budget), ST_OK);
    struct peer *watch = send_charged(CMS "?watch=1", TABLE, budget);
    struct account *account = watch->x.account;
    run_all();
    store_labelled("a", BYTES);
    fill_once(watch, 64); /* the worker converts it, and nothing of it is read */
    assert_int_equal(watch->code, 200);
    assert_true(account_held_bytes(account) >= BYTES);
    end_with_worker();
    assert_int_equal(account_held_bytes(account), 0);
    account_unref(account);
    budget_free(budget);
}

/* -- Definitions -- */

#define DEFINITION(plural)                                                                         \
    "{\"metadata\":{\"name\":\"" plural ".example.com\"},\"spec\":{\"group\":\"example.com\","     \
    "\"scope\":\"Cluster\",\"names\":{\"plural\":\"" plural "\",\"kind\":\"Hat\"},\"versions\":[{" \
    "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"           \
    "\"type\":\"object\"}}}]}}"

/* The job that gives free names to other definitions decides on the worker. */
static void names_that_become_free_are_accepted_on_the_worker(void **state)
{
    (void)state;
    begin_with_worker();
    ask("POST", CRDS, DEFINITION("hats"), 201);
    ask("POST", CRDS, DEFINITION("caps"), 201);
    ask("GET", "/apis/example.com/v1/caps", "", 404);
    block(0);
    ask("DELETE", CRDS "/hats.example.com", "", 200);
    ask("GET", "/apis/example.com/v1/caps", "", 404);
    unblock();
    run_all();
    ask("GET", "/apis/example.com/v1/caps", "", 200);
    end_with_worker();
}

/* Every name is compared with those of all other definitions. */
static void a_write_of_one_of_many_definitions_is_large(void **state)
{
    enum { MANY = 300 };
    (void)state;
    begin_with_worker();
    for (int i = 0; i < MANY; i++) {
        char key[128], text[512];
        snprintf(key, sizeof(key), KUBE_DEFINITIONS_PREFIX "k%d.example.com", i);
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"k%d.example.com\"},\"spec\":{\"group\":\"example.com\","
                 "\"scope\":\"Cluster\",\"names\":{\"plural\":\"k%d\"},\"versions\":[{\"name\":"
                 "\"v1\",\"served\":true,\"storage\":true}]}}",
                 i, i);
        store(key, slice_from_text(text));
    }
    block(0);
    struct peer *made = send_json("POST", CRDS, DEFINITION("hats"));
    run();
    assert_int_equal(made->code, 0);
    unblock();
    run_all();
    assert_answer(made, 201, NULL);
    end_with_worker();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_answered_meanwhile),
        cmocka_unit_test(clients_may_disconnect_while_their_call_is_on_the_worker),
        cmocka_unit_test(lists_and_watches_convert_large_objects_on_the_worker),
        cmocka_unit_test(large_live_events_are_converted_on_the_worker),
        cmocka_unit_test(clients_may_disconnect_during_a_conversion),
        cmocka_unit_test(requests_beyond_the_queue_of_the_worker_get_429),
        cmocka_unit_test(calls_lose_their_places_to_connections_with_fewer),
        cmocka_unit_test(calls_of_other_addresses_are_accepted),
        cmocka_unit_test(the_answer_to_a_write_is_not_refused),
        cmocka_unit_test(options_of_a_delete_are_short),
        cmocka_unit_test(what_the_worker_makes_of_a_list_is_charged),
        cmocka_unit_test(what_the_worker_makes_of_an_event_is_charged),
        cmocka_unit_test(names_that_become_free_are_accepted_on_the_worker),
        cmocka_unit_test(a_write_of_one_of_many_definitions_is_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
