/* Blocking writes of many threads that become durable together: they wake each other. */
#include "embed/fixture_test.h"

enum { WRITERS = 40 };

struct writer {
    pthread_t id;
    vigil_client *client;
    int64_t timeout_ms; /* 0: none */
    int code;
};

static void *put_one(void *arg)
{
    struct writer *writer = arg;
    vigil_call *call = vigil_put(writer->client, vigil_text("k"), vigil_text("v"), 0);
    vigil_call_set_timeout(call, writer->timeout_ms);
    writer->code = run(call);
    return NULL;
}

static void start(struct writer *writer)
{
    assert_int_equal(pthread_create(&writer->id, NULL, put_one, writer), 0);
}

/* Every third one leaves before the group is durable, so that each row of threads has some. */
static bool leaves(int i)
{
    return i % 3 == 0;
}

static void threads_that_have_left_do_not_keep_others_asleep(void **state)
{
    (void)state;
    struct writer first, writers[WRITERS];
    vigil_client *client = open_store(), *other = open_store();
    first = (struct writer){.client = client};
    assert_int_equal(put(client, "a", "1"), VIGIL_OK);
    atomic_store(&sync_waits, true);
    start(&first);
    AWAIT(atomic_load(&syncs_waiting));
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.client = i % 2 ? client : other, .timeout_ms = leaves(i)};
        start(&writers[i]);
    }
    for (int i = 0; i < WRITERS; i++)
        if (leaves(i))
            pthread_join(writers[i].id, NULL);
    atomic_store(&sync_waits, false);
    pthread_join(first.id, NULL);
    assert_int_equal(first.code, VIGIL_OK);
    for (int i = 0; i < WRITERS; i++) {
        if (!leaves(i))
            pthread_join(writers[i].id, NULL);
        assert_int_equal(writers[i].code, leaves(i) ? VIGIL_ERROR_TIMEOUT : VIGIL_OK);
    }
    vigil_client_free(other); /* waits for the writes that were left */
    vigil_client_free(client);
}

/* Threads that come and go while others are woken. */
static void *put_many(void *arg)
{
    struct writer *writer = arg;
    for (int i = 0; i < 50 && writer->code == VIGIL_OK; i++)
        writer->code = put(writer->client, "k", "v");
    return NULL;
}

static void every_write_of_many_threads_returns(void **state)
{
    (void)state;
    struct writer writers[WRITERS];
    vigil_client *client = open_store();
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.client = client};
        assert_int_equal(pthread_create(&writers[i].id, NULL, put_many, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].id, NULL);
        assert_int_equal(writers[i].code, VIGIL_OK);
    }
    vigil_client_free(client);
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        STORE_TEST(threads_that_have_left_do_not_keep_others_asleep),
        STORE_TEST(every_write_of_many_threads_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
