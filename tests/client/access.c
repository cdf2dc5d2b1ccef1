/* What a server that protects itself does with a client. The driver starts such servers. */
#include "suite.h"

static void wrong_password_is_an_error(void)
{
    vigil_client *client = new_client();
    for (int i = 0; i < 2; i++) { /* also the second call fails, instead of waiting */
        vigil_call *call = vigil_get(client, vigil_text("k"));
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_ERROR_UNAUTHENTICATED);
        CHECK(strstr(vigil_call_error(call)->text, "authentication failed"));
        vigil_call_free(call);
    }
    vigil_client_free(client);
}

static struct latch ended = LATCH_INIT;

static int note_end(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    CHECK(batch->what == VIGIL_WATCH_ENDED);
    *(vigil_error *)user = *batch->error;
    latch_add(&ended, 1);
    return VIGIL_WATCH_CONTINUE;
}

static void forbidden_watch_ends_with_the_reason(void)
{
    vigil_client *client = new_client();
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_error error;
    vigil_watch_options_init(&options);
    options.key = vigil_text("forbidden");
    CHECK(vigil_watch_new(client, &options, note_end, &error, &watch) == VIGIL_OK);
    latch_wait(&ended, 1);
    CHECK(error.code == VIGIL_ERROR_PERMISSION_DENIED);
    CHECK(strcmp(error.text, "etcdserver: permission denied") == 0);
    vigil_watch_free(watch);
    vigil_call *call = vigil_get(client, vigil_text("forbidden"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_PERMISSION_DENIED);
    vigil_call_free(call);
    put(client, "anna/allowed", "x");
    vigil_client_free(client);
}

static int note_created(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    latch_add((struct latch *)user, batch->what == VIGIL_WATCH_CREATED);
    return VIGIL_WATCH_CONTINUE;
}

/* The client has no user, so only the metadata of a watch can name one. */
static void metadata_of_a_watch_reaches_the_server(void)
{
    struct latch created = LATCH_INIT;
    vigil_metadata token = {"token", getenv("VIGIL_METADATA_TOKEN")};
    vigil_client *client = new_client();
    vigil_watch_options options;
    vigil_watch *allowed, *forbidden;
    vigil_error error;
    vigil_watch_options_init(&options);
    options.key = vigil_text("anna/key");
    options.created_notify = 1;
    CHECK(vigil_watch_new(client, &options, note_end, &error, &forbidden) == VIGIL_OK);
    latch_wait(&ended, 1);
    options.metadata = &token;
    options.metadata_count = 1;
    CHECK(vigil_watch_new(client, &options, note_created, &created, &allowed) == VIGIL_OK);
    latch_wait(&created, 1);
    vigil_watch_free(allowed);
    vigil_watch_free(forbidden);
    vigil_client_free(client);
}

static void untrusted_server_is_refused_with_the_reason(void)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.call_timeout_ms = 1000;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_call *call = vigil_get(client, vigil_text("k"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_UNAVAILABLE);
    CHECK(strstr(vigil_call_error(call)->text, "certificate signed by unknown authority"));
    vigil_call_free(call);
    vigil_client_free(client);
}

const struct suite_test access_tests[] = {
    {"wrong_password_is_an_error", wrong_password_is_an_error},
    {"forbidden_watch_ends_with_the_reason", forbidden_watch_ends_with_the_reason},
    {"metadata_of_a_watch_reaches_the_server", metadata_of_a_watch_reaches_the_server},
    {"untrusted_server_is_refused_with_the_reason", untrusted_server_is_refused_with_the_reason},
    {NULL, NULL},
};
