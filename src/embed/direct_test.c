#include "client/api/methods.h"
#include "client/call/client.h"
#include "embed/fixture_test.h"

enum { ORDERED_ROUNDS = 200 };

static void note_code(vigil_call *call, void *user)
{
    atomic_store((_Atomic int *)user, vigil_call_error(call)->code);
}

/* Starts a call whose code is stored when it completes. */
static vigil_call *start(vigil_call *call, _Atomic int *code)
{
    atomic_store(code, -1);
    assert_int_equal(vigil_call_start(call, note_code, code), VIGIL_OK);
    return call;
}

static bool is_same(vigil_bytes a, vigil_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool has_value(vigil_client *client, const char *key, const char *value)
{
    vigil_call *get = vigil_get(client, vigil_text(key));
    assert_int_equal(vigil_call_run(get), VIGIL_OK);
    const vigil_range_response *found = vigil_range_result(get);
    bool same = found->kv_count == 1 && is_same(found->kvs[0].value, vigil_text(value));
    vigil_call_free(get);
    return same;
}

/* -- Gets, whose requests and responses are made without the encoder and the decoder -- */

static void check_same(const vigil_range_response *a, const vigil_range_response *b)
{
    assert_int_equal(a->header->cluster_id, b->header->cluster_id);
    assert_int_equal(a->header->member_id, b->header->member_id);
    assert_int_equal(a->header->revision, b->header->revision);
    assert_int_equal(a->header->raft_term, b->header->raft_term);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->more, b->more);
    assert_int_equal(a->kv_count, b->kv_count);
    for (size_t i = 0; i < a->kv_count; i++) {
        const vigil_kv *x = &a->kvs[i], *y = &b->kvs[i];
        assert_true(is_same(x->key, y->key) && is_same(x->value, y->value));
        assert_int_equal(x->create_revision, y->create_revision);
        assert_int_equal(x->mod_revision, y->mod_revision);
        assert_int_equal(x->version, y->version);
        assert_int_equal(x->lease, y->lease);
    }
}

/* The range of the same one key. */
static vigil_call *range_of(vigil_client *client, const char *key)
{
    vigil_range_request request;
    char end[64];
    size_t len = strlen(key) + 1; /* with a zero byte: the next possible key */
    assert_true(len <= sizeof(end));
    memcpy(end, key, len);
    vigil_range_request_init(&request);
    request.key = vigil_text(key);
    request.range_end = vigil_bytes_of(end, len);
    return vigil_range(client, &request);
}

static void check_get(vigil_client *client, const char *key, size_t found)
{
    vigil_call *get = vigil_get(client, vigil_text(key)), *range = range_of(client, key);
    assert_int_equal(vigil_call_run(get), VIGIL_OK);
    assert_int_equal(vigil_call_run(range), VIGIL_OK);
    assert_int_equal(vigil_range_result(get)->kv_count, found);
    assert_int_equal(vigil_call_error(get)->grpc_code, vigil_call_error(range)->grpc_code);
    check_same(vigil_range_result(get), vigil_range_result(range));
    vigil_call_free(get);
    vigil_call_free(range);
}

static void put_some(vigil_client *client)
{
    vigil_call *grant = vigil_lease_grant(client, 1000, 4711);
    char large[5000];
    memset(large, 'l', sizeof(large));
    assert_int_equal(run(grant), VIGIL_OK);
    assert_int_equal(put(client, "k", "v"), VIGIL_OK);
    assert_int_equal(put(client, "k", "w"), VIGIL_OK);
    assert_int_equal(put(client, "empty", ""), VIGIL_OK);
    assert_int_equal(run(vigil_put(client, vigil_text("leased"), vigil_text("v"), 4711)), VIGIL_OK);
    assert_int_equal(
        run(vigil_put(client, vigil_text("large"), vigil_bytes_of(large, sizeof(large)), 0)),
        VIGIL_OK);
    assert_int_equal(put(client, "deleted", "v"), VIGIL_OK);
    assert_int_equal(run(vigil_delete(client, vigil_text("deleted"))), VIGIL_OK);
}

static void get_has_what_a_range_has(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    put_some(client);
    static const char *const keys[] = {"k", "empty", "leased", "large"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        check_get(client, keys[i], 1);
    check_get(client, "deleted", 0);
    check_get(client, "never", 0);
    vigil_call *nameless = vigil_get(client, vigil_text(""));
    assert_int_equal(vigil_call_run(nameless), VIGIL_ERROR_SERVER);
    assert_string_equal(vigil_call_error(nameless)->text, "etcdserver: key is not provided");
    vigil_call_free(nameless);
    vigil_client_free(client);
}

static void get_has_the_prefix_of_its_client(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_options own;
    vigil_client *all = open_store();
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.prefix = "team/";
    options.client = &own;
    vigil_client *team = open_with(&options);
    put_some(team);
    check_get(team, "k", 1);
    check_get(team, "empty", 1);
    check_get(team, "never", 0);
    assert_int_equal(count(team, "", false), 0);
    assert_int_equal(put(all, "team/", "x"), VIGIL_OK);
    assert_true(has_value(team, "", "x"));
    assert_true(has_value(all, "team/k", "w"));
    assert_false(has_value(all, "k", "w"));
    vigil_client_free(team);
    vigil_client_free(all);
}

/* -- Puts, of which the same is true -- */

static vigil_call *put_with(vigil_client *client, const char *key, const char *value, int64_t lease)
{
    vigil_put_request request;
    vigil_put_request_init(&request);
    request.key = vigil_text(key);
    request.value = vigil_text(value);
    request.lease = lease;
    return vigil_put_with(client, &request);
}

static void check_put(vigil_client *client, const char *key, const char *value, int64_t lease)
{
    vigil_call *put = vigil_put(client, vigil_text(key), vigil_text(value), lease);
    vigil_call *encoded = put_with(client, key, value, lease);
    assert_true(slice_equal(client_call_request(put), client_call_request(encoded)));
    int code = vigil_call_run(put);
    assert_int_equal(vigil_call_run(encoded), code);
    assert_int_equal(vigil_call_error(put)->grpc_code, vigil_call_error(encoded)->grpc_code);
    assert_string_equal(vigil_call_error(put)->text, vigil_call_error(encoded)->text);
    assert_int_equal(!vigil_put_result(put), code != VIGIL_OK);
    if (code == VIGIL_OK) {
        const vigil_put_response *response = vigil_put_result(put);
        assert_int_equal(response->header->revision + 1,
                         vigil_put_result(encoded)->header->revision);
        assert_true(response->header->cluster_id && response->header->member_id);
        assert_null(response->prev_kv);
        assert_true(has_value(client, key, value));
    }
    vigil_call_free(put);
    vigil_call_free(encoded);
}

static void put_is_what_the_encoder_makes(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_options own;
    vigil_client *client = open_store();
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.prefix = "team/";
    options.client = &own;
    vigil_client *team = open_with(&options);
    assert_int_equal(run(vigil_lease_grant(client, 1000, 4711)), VIGIL_OK);
    vigil_client *const clients[] = {client, team};
    for (size_t i = 0; i < 2; i++) {
        check_put(clients[i], "k", "v", 0);
        check_put(clients[i], "k", "", 0);
        check_put(clients[i], "leased", "v", 4711);
        check_put(clients[i], "leased", "v", 4712); /* there is no such lease */
        check_put(clients[i], "", "v", 0);          /* refused without a prefix */
    }
    vigil_client_free(team);
    vigil_client_free(client);
}

/* Sends these bytes as the request of a put. */
static int put_bytes(vigil_client *client, const char *bytes, size_t len)
{
    vigil_call *call = client_call_new(client, &client_methods[METHOD_PUT]);
    uint8_t *room = client_call_room(call, len);
    assert_non_null(room);
    memcpy(room, bytes, len);
    return run(call);
}
#define PUT_BYTES(client, bytes) put_bytes(client, bytes, sizeof(bytes) - 1)

static void unusual_requests_are_decoded_by_the_table(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    assert_int_equal(PUT_BYTES(client, "\x12\x01v\x0a\x01k"), VIGIL_OK); /* the value first */
    assert_true(has_value(client, "k", "v"));
    assert_int_equal(PUT_BYTES(client, "\x0a\x01k\x12\x01v\x12\x01w"), VIGIL_OK); /* twice */
    assert_true(has_value(client, "k", "w"));
    assert_int_equal(PUT_BYTES(client, "\x0a\x01k\x12\x01x\x18\x00"), VIGIL_OK);
    assert_true(has_value(client, "k", "x"));
    /* ignore_lease, of a key that does not exist */
    assert_int_equal(PUT_BYTES(client, "\x0a\x01z\x30\x01"), VIGIL_ERROR_SERVER);
    assert_int_not_equal(PUT_BYTES(client, "\x0a\x01k\x12\x05v"), VIGIL_OK);
    assert_int_not_equal(PUT_BYTES(client, "\x0a\x01k\x18\x80"), VIGIL_OK);
    assert_int_not_equal(PUT_BYTES(client, "\x0a\x09k"), VIGIL_OK);
    assert_int_not_equal(PUT_BYTES(client, ""), VIGIL_OK);
    vigil_client_free(client);
}

/* -- The order of writes -- */

/* The program's loop has made no turn when the second write begins. */
static void blocking_write_does_not_overtake_a_started_one(void **state)
{
    (void)state;
    vigil_client *client = open_in_own_loop();
    vigil_txn *txn = vigil_txn_new(client);
    _Atomic int code;
    vigil_call *first = start(vigil_put(client, vigil_text("k"), vigil_text("first"), 0), &code);
    assert_int_equal(put(client, "k", "second"), VIGIL_OK);
    assert_int_equal(atomic_load(&code), VIGIL_OK);
    assert_true(has_value(client, "k", "second"));
    vigil_call_free(first);
    first = start(vigil_delete(client, vigil_text("k")), &code);
    vigil_txn_put(txn, vigil_text("k"), vigil_text("third"), 0);
    assert_int_equal(run(vigil_txn_call(txn)), VIGIL_OK);
    assert_true(has_value(client, "k", "third"));
    vigil_call_free(first);
    vigil_txn_free(txn);
    vigil_client_free(client);
}

static void writes_of_a_thread_keep_their_order(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    for (int i = 0; i < ORDERED_ROUNDS; i++) {
        _Atomic int code;
        vigil_call *first =
            start(vigil_put(client, vigil_text("k"), vigil_text("first"), 0), &code);
        assert_int_equal(put(client, "k", "second"), VIGIL_OK);
        assert_true(has_value(client, "k", "second"));
        AWAIT(atomic_load(&code) == VIGIL_OK);
        vigil_call_free(first);
    }
    vigil_client_free(client);
}

/* A write that was canceled before it began, or is refused, is not waited for by later ones. */
static void writes_that_never_begin_are_not_waited_for(void **state)
{
    (void)state;
    vigil_client *client = open_in_own_loop();
    _Atomic int code;
    vigil_call *canceled = start(vigil_put(client, vigil_text("k"), vigil_text("v"), 0), &code);
    vigil_call_cancel(canceled);
    vigil_client_process(client);
    assert_int_equal(atomic_load(&code), VIGIL_ERROR_CANCELED);
    vigil_call *refused = start(vigil_put(client, vigil_text(""), vigil_text("v"), 0), &code);
    vigil_client_process(client);
    assert_true(atomic_load(&code) > VIGIL_OK);
    assert_int_equal(atomic_load(&client->writes_posted), 0);
    vigil_call_free(refused);
    vigil_call_free(canceled);
    vigil_client_free(client);
}

/* -- Users -- */

/* The writer has enabled authentication, but no reader can see it yet. The calls have a user, and
 * get a token when they are refused. */
static void calls_survive_that_authentication_is_enabled(void **state)
{
    (void)state;
    _Atomic int enabled, code;
    vigil_client *client = open_as("root", "secret");
    assert_int_equal(put(client, "k", "v"), VIGIL_OK);
    assert_int_equal(run(vigil_user_add(client, "root", "secret")), VIGIL_OK);
    assert_int_equal(run(vigil_user_grant_role(client, "root", "root")), VIGIL_OK);
    int before = atomic_load(&syncs);
    atomic_store(&sync_waits, true);
    vigil_call *enable = start(vigil_auth_enable(client), &enabled);
    AWAIT(atomic_load(&syncs) > before);
    vigil_call *late = start(vigil_put(client, vigil_text("k"), vigil_text("late"), 0), &code);
    usleep(50000); /* it waits for the writer now; the test is correct without it */
    atomic_store(&sync_waits, false);
    AWAIT(atomic_load(&code) != -1);
    assert_string_equal(vigil_call_error(late)->text, "");
    assert_int_equal(atomic_load(&code), VIGIL_OK);
    AWAIT(atomic_load(&enabled) == VIGIL_OK);
    assert_true(has_value(client, "k", "late"));
    vigil_call_free(late);
    vigil_call_free(enable);
    vigil_client_free(client);
}

/* -- Limits -- */

enum { LARGE_BYTES = 1 << 20 };

static void put_large(vigil_client *client, int keys)
{
    static char value[LARGE_BYTES];
    char key[16];
    for (int i = 0; i < keys; i++) {
        snprintf(key, sizeof(key), "k%02d", i);
        assert_int_equal(
            run(vigil_put(client, vigil_text(key), vigil_bytes_of(value, sizeof(value)), 0)),
            VIGIL_OK);
    }
}

static void check_too_large(vigil_call *call)
{
    assert_int_equal(vigil_call_run(call), VIGIL_ERROR_TOO_LARGE);
    assert_int_equal(vigil_call_error(call)->outcome, VIGIL_UNKNOWN);
    vigil_call_free(call);
}

static vigil_call *delete_large(vigil_client *client)
{
    vigil_delete_request request;
    vigil_delete_request_init(&request);
    request.key = vigil_text("k");
    request.range_end = vigil_text("l");
    request.prev_kv = 1;
    return vigil_delete_with(client, &request);
}

static vigil_call *read_large(vigil_client *client)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("k");
    request.range_end = vigil_text("l");
    vigil_txn *txn = vigil_txn_new(client);
    vigil_txn_range(txn, &request);
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    return call;
}

static void responses_have_a_limit(void **state)
{
    (void)state;
    vigil_embedded_options options;
    vigil_options own;
    _Atomic int code;
    vigil_embedded_options_init(&options);
    vigil_options_init(&own);
    own.receive_bytes_max = LARGE_BYTES + LARGE_BYTES / 2;
    options.client = &own;
    vigil_client *client = open_with(&options);
    put_large(client, 1);
    assert_int_equal(run(read_large(client)), VIGIL_OK);
    put_large(client, 2);
    check_too_large(vigil_get_prefix(client, vigil_text("k")));
    check_too_large(read_large(client));
    vigil_call *started = start(read_large(client), &code);
    AWAIT(atomic_load(&code) != -1);
    assert_int_equal(atomic_load(&code), VIGIL_ERROR_TOO_LARGE);
    vigil_call_free(started);
    check_too_large(delete_large(client));
    assert_int_equal(count(client, "k", true), 0);
    vigil_client_free(client);
}

static void check_late(vigil_call *call)
{
    vigil_call_set_timeout(call, 1);
    assert_int_equal(vigil_call_run(call), VIGIL_ERROR_TIMEOUT);
    assert_string_equal(vigil_call_error(call)->text, "no answer within 1 ms");
    vigil_call_free(call);
}

/* More than a thread can copy to new memory in a millisecond. */
static void long_ranges_have_a_timeout(void **state)
{
    (void)state;
    vigil_client *client = open_store();
    put_large(client, 48);
    check_late(vigil_get_prefix(client, vigil_text("k")));
    vigil_call *patient = vigil_get_prefix(client, vigil_text("k"));
    vigil_call_set_timeout(patient, 0);
    assert_int_equal(vigil_call_run(patient), VIGIL_OK);
    assert_int_equal(vigil_range_result(patient)->kv_count, 48);
    vigil_call_free(patient);
    vigil_client_free(client);
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        STORE_TEST(get_has_what_a_range_has),
        STORE_TEST(get_has_the_prefix_of_its_client),
        STORE_TEST(put_is_what_the_encoder_makes),
        STORE_TEST(unusual_requests_are_decoded_by_the_table),
        STORE_TEST(blocking_write_does_not_overtake_a_started_one),
        STORE_TEST(writes_of_a_thread_keep_their_order),
        STORE_TEST(writes_that_never_begin_are_not_waited_for),
        STORE_TEST(calls_survive_that_authentication_is_enabled),
        STORE_TEST(responses_have_a_limit),
        STORE_TEST(long_ranges_have_a_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
