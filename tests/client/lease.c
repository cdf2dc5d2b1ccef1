#include "suite.h"

#include <unistd.h>

static int64_t grant(vigil_client *client, int64_t ttl)
{
    vigil_call *call = vigil_lease_grant(client, ttl, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    int64_t id = vigil_lease_grant_result(call)->id;
    CHECK(id != 0 && vigil_lease_grant_result(call)->ttl == ttl);
    vigil_call_free(call);
    return id;
}

struct loss {
    struct latch count;
    vigil_error error;
};

static void on_lost(vigil_lease *lease, const vigil_error *error, void *user)
{
    struct loss *loss = user;
    CHECK(vigil_lease_user(lease) == user);
    loss->error = *error;
    latch_add(&loss->count, 1);
}

/* Until the server shows more time than before, which only a renewal can cause. */
static void await_renewal(vigil_client *client, int64_t id)
{
    for (int64_t ttl, before = INT64_MAX;; before = ttl) {
        vigil_call *call = vigil_lease_ttl(client, id, 0);
        CHECK(vigil_call_run(call) == VIGIL_OK);
        ttl = vigil_lease_ttl_result(call)->ttl;
        vigil_call_free(call);
        CHECK(ttl >= 0);
        if (ttl > before)
            return;
        usleep(100000);
    }
}

static void lease_calls(void)
{
    vigil_client *client = new_client();
    int64_t id = grant(client, 100);
    must(vigil_put(client, vigil_text("leased"), vigil_text("x"), id));
    vigil_call *call = vigil_lease_ttl(client, id, 1);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    const vigil_lease_ttl_response *ttl = vigil_lease_ttl_result(call);
    CHECK(ttl->granted_ttl == 100 && ttl->ttl > 0 && ttl->key_count == 1);
    CHECK(bytes_equal(ttl->keys[0], "leased"));
    vigil_call_free(call);
    call = vigil_lease_list(client);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_lease_list_result(call)->lease_count == 1);
    CHECK(vigil_lease_list_result(call)->leases[0].id == id);
    vigil_call_free(call);
    must(vigil_lease_revoke(client, id));
    call = vigil_get(client, vigil_text("leased"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 0);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void kept_lease_lives_and_its_loss_is_reported(void)
{
    enum { TTL_S = 6 }; /* a renewal may be late by two thirds of it on a busy machine */
    vigil_client *client = new_client();
    struct loss loss = {LATCH_INIT, {0, 0, 0, 0, ""}};
    vigil_lease *lease, *again;
    int64_t id = grant(client, TTL_S), unkept = grant(client, TTL_S);
    must(vigil_put(client, vigil_text("kept"), vigil_text("x"), id));
    must(vigil_put(client, vigil_text("unkept"), vigil_text("x"), unkept));
    CHECK(vigil_lease_keep(client, id, TTL_S, on_lost, &loss, &lease) == VIGIL_OK);
    CHECK(vigil_lease_keep(client, id, TTL_S, NULL, NULL, &again) == VIGIL_OK);
    vigil_call *call;
    do { /* until the other lease has expired */
        call = vigil_get(client, vigil_text("unkept"));
        CHECK(vigil_call_run(call) == VIGIL_OK);
        size_t left = vigil_range_result(call)->kv_count;
        vigil_call_free(call);
        usleep(100000);
        if (left == 0)
            break;
    } while (1);
    call = vigil_get(client, vigil_text("kept"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_range_result(call)->kv_count == 1);
    vigil_call_free(call);
    CHECK(latch_count(&loss.count) == 0);
    vigil_lease_free(again);
    must(vigil_lease_revoke(client, id));
    latch_wait(&loss.count, 1);
    CHECK(loss.error.code == VIGIL_ERROR_LEASE_NOT_FOUND);
    vigil_lease_free(lease);
    vigil_client_free(client);
}

static void lease_is_kept_over_a_restart(void)
{
    vigil_client *client = new_client();
    enum { TTL_S = 15 }; /* longer than a restart takes on a busy machine */
    struct loss loss = {LATCH_INIT, {0, 0, 0, 0, ""}};
    vigil_lease *lease;
    int64_t id = grant(client, TTL_S);
    CHECK(vigil_lease_keep(client, id, TTL_S, on_lost, &loss, &lease) == VIGIL_OK);
    ask("restart");
    await_renewal(client, id);
    CHECK(latch_count(&loss.count) == 0);
    vigil_lease_free(lease);
    vigil_client_free(client);
}

const struct suite_test lease_tests[] = {
    {"lease_calls", lease_calls},
    {"kept_lease_lives_and_its_loss_is_reported", kept_lease_lives_and_its_loss_is_reported},
    {"lease_is_kept_over_a_restart", lease_is_kept_over_a_restart},
    {NULL, NULL},
};
