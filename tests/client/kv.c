#include "suite.h"

static void put_get_and_delete(void)
{
    vigil_client *client = new_client();
    int64_t first = put(client, "a", "1");
    vigil_put_request request;
    vigil_put_request_init(&request);
    request.key = vigil_text("a");
    request.value = vigil_text("2");
    request.prev_kv = 1;
    vigil_call *call = vigil_put_with(client, &request);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(bytes_equal(vigil_put_result(call)->prev_kv->value, "1"));
    CHECK(vigil_range_result(call) == NULL); /* it is another kind of call */
    vigil_call_free(call);

    call = vigil_get(client, vigil_text("a"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    const vigil_range_response *range = vigil_range_result(call);
    CHECK(range->kv_count == 1 && range->count == 1 && !range->more);
    CHECK(bytes_equal(range->kvs[0].value, "2"));
    CHECK(range->kvs[0].create_revision == first && range->kvs[0].version == 2);
    vigil_call_free(call);

    call = vigil_delete(client, vigil_text("a"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_delete_result(call)->deleted == 1);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void prefixes(void)
{
    vigil_client *client = new_client();
    put(client, "p/1", "x");
    put(client, "p/2", "x");
    put(client, "p0", "x");
    vigil_call *call = vigil_get_prefix(client, vigil_text("p/"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 2);
    vigil_call_free(call);
    call = vigil_get_prefix(client, vigil_text(""));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 3);
    vigil_call_free(call);
    unsigned char buffer[2];
    vigil_bytes end = vigil_prefix_end(vigil_bytes_of("a\xff", 2), buffer);
    CHECK(bytes_equal(end, "b"));
    end = vigil_prefix_end(vigil_bytes_of("\xff\xff", 2), buffer);
    CHECK(end.size == 1 && *(const char *)end.data == 0);
    vigil_client_free(client);
}

static void client_with_a_prefix_sees_only_its_keys(void)
{
    vigil_options options;
    vigil_client *inner, *outer = new_client();
    default_options(&options);
    options.prefix = "team/";
    CHECK(vigil_client_new(&options, &inner, NULL) == VIGIL_OK);
    put(outer, "other", "x");
    put(inner, "a", "1");
    put(inner, "b", "2");
    vigil_range_request all;
    vigil_range_request_init(&all);
    all.range_end = vigil_bytes_of("", 1);
    vigil_call *call = vigil_range(inner, &all);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 2);
    CHECK(bytes_equal(vigil_range_result(call)->kvs[0].key, "a"));
    vigil_call_free(call);
    call = vigil_get(outer, vigil_text("team/b"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 1);
    vigil_call_free(call);
    vigil_client_free(inner);
    vigil_client_free(outer);
}

static void transactions(void)
{
    vigil_client *client = new_client();
    for (int round = 0; round < 2; round++) {
        vigil_txn *txn = vigil_txn_new(client);
        vigil_txn_if_create_revision(txn, vigil_text("lock"), VIGIL_EQUAL, 0);
        vigil_txn_put(txn, vigil_text("lock"), vigil_text("me"), 0);
        vigil_txn_else(txn);
        vigil_txn_get(txn, vigil_text("lock"));
        vigil_call *call = vigil_txn_call(txn);
        vigil_txn_free(txn);
        CHECK(vigil_call_run(call) == VIGIL_OK);
        const vigil_txn_response *result = vigil_txn_result(call);
        CHECK(result->succeeded == (round == 0) && result->response_count == 1);
        if (round == 0)
            CHECK(result->responses[0].kind == VIGIL_OP_PUT);
        else
            CHECK(bytes_equal(result->responses[0].as.range->kvs[0].value, "me"));
        vigil_call_free(call);
    }
    vigil_client_free(client);
}

static void nested_transactions(void)
{
    vigil_client *client = new_client();
    vigil_txn *inner = vigil_txn_new(client), *outer = vigil_txn_new(client);
    vigil_txn_put(inner, vigil_text("n"), vigil_text("1"), 0);
    vigil_txn_nest(outer, inner);
    vigil_txn_get(outer, vigil_text("n"));
    vigil_call *call = vigil_txn_call(outer);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    const vigil_txn_response *result = vigil_txn_result(call);
    CHECK(result->response_count == 2 && result->responses[0].kind == VIGIL_OP_TXN);
    CHECK(result->responses[0].as.txn->responses[0].kind == VIGIL_OP_PUT);
    CHECK(result->responses[1].as.range->kv_count == 1);
    vigil_call_free(call);
    vigil_txn_free(inner);
    vigil_txn_free(outer);
    vigil_client_free(client);
}

static void errors_of_the_server_have_codes(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "e", "1");
    put(client, "e", "2");
    must(vigil_compact(client, revision + 1, 1));
    vigil_range_request old;
    vigil_range_request_init(&old);
    old.key = vigil_text("e");
    old.revision = revision;
    vigil_call *call = vigil_range(client, &old);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_COMPACTED);
    CHECK(vigil_call_error(call)->grpc_code == 11);
    CHECK(vigil_call_error(call)->outcome == VIGIL_REFUSED);
    CHECK(vigil_range_result(call) == NULL && vigil_call_header(call) == NULL);
    vigil_call_free(call);
    call = vigil_put(client, vigil_text("e"), vigil_text("3"), 12345);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_LEASE_NOT_FOUND);
    vigil_call_free(call);
    call = vigil_put(client, vigil_text(""), vigil_text("3"), 0);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_SERVER);
    CHECK(strcmp(vigil_call_error(call)->text, "etcdserver: key is not provided") == 0);
    vigil_call_free(call);
    vigil_client_free(client);
}

static struct latch completed = LATCH_INIT;

static void note_success(vigil_call *call, void *user)
{
    CHECK_CODE(call, VIGIL_OK);
    CHECK(vigil_call_user(call) == user);
    latch_add((struct latch *)user, 1);
    vigil_call_free(call);
}

/* More calls than any server allows streams, and few enough that a cluster of three on a busy
   machine is far from the 7 seconds after which etcd answers "request timed out". */
static void many_calls_at_once(void)
{
    enum { CALLS = 2000 };
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    for (int i = 0; i < CALLS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "many/%d", i);
        vigil_call *call = i % 2 ? vigil_put(client, vigil_text(key), vigil_text("v"), 0)
                                 : vigil_get(client, vigil_text(key));
        CHECK(vigil_call_start(call, note_success, &completed) == VIGIL_OK);
    }
    latch_wait(&completed, CALLS);
    vigil_call *call = vigil_get_prefix(client, vigil_text("many/"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == CALLS / 2);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void large_values(void)
{
    enum { BYTES = 1 << 20 };
    vigil_client *client = new_client();
    char *value = malloc(BYTES), key[32];
    memset(value, 'v', BYTES);
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "large/%d", i);
        must(vigil_put(client, vigil_text(key), vigil_bytes_of(value, BYTES), 0));
    }
    vigil_call *call = vigil_get_prefix(client, vigil_text("large/"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 20);
    for (int i = 0; i < 20; i++) {
        vigil_bytes read = vigil_range_result(call)->kvs[i].value;
        CHECK(read.size == BYTES && memcmp(read.data, value, BYTES) == 0);
    }
    vigil_call_free(call);
    free(value);
    vigil_client_free(client);
}

static void request_over_the_limit_is_not_sent(void)
{
    enum { BYTES = 2 << 20 };
    vigil_client *client = new_client();
    char *value = calloc(1, BYTES);
    vigil_call *call = vigil_put(client, vigil_text("k"), vigil_bytes_of(value, BYTES), 0);
    CHECK(vigil_call_run(call) == VIGIL_ERROR_REQUEST_TOO_LARGE);
    CHECK(vigil_call_error(call)->outcome == VIGIL_NOT_SENT);
    vigil_call_free(call);
    free(value);
    vigil_client_free(client);
}

static void response_over_the_limit_is_an_error(void)
{
    vigil_options options;
    vigil_client *client;
    char value[5000];
    memset(value, 'v', sizeof(value));
    default_options(&options);
    options.receive_bytes_max = 4096;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    must(vigil_put(client, vigil_text("l"), vigil_bytes_of(value, sizeof(value)), 0));
    vigil_call *call = vigil_get(client, vigil_text("l"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_TOO_LARGE);
    vigil_call_free(call);
    put(client, "l", "short"); /* the connection still works */
    vigil_client_free(client);
}

const struct suite_test kv_tests[] = {
    {"put_get_and_delete", put_get_and_delete},
    {"prefixes", prefixes},
    {"client_with_a_prefix_sees_only_its_keys", client_with_a_prefix_sees_only_its_keys},
    {"transactions", transactions},
    {"nested_transactions", nested_transactions},
    {"errors_of_the_server_have_codes", errors_of_the_server_have_codes},
    {"many_calls_at_once", many_calls_at_once},
    {"large_values", large_values},
    {"request_over_the_limit_is_not_sent", request_over_the_limit_is_not_sent},
    {"response_over_the_limit_is_an_error", response_over_the_limit_is_an_error},
    {NULL, NULL},
};
