/* Deleting many objects at once, while others change them. */
#include "kube/server/bed_test.h"

#include "base/memory/budget.h"

enum { SEEDS = 40, OBJECTS = 12 };

static void make(const char *name, const char *more)
{
    char body[256];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"%s}}", name, more);
    ask("POST", CMS, body, 201);
}

static void definitions_deleted_together_are_purged(void **state)
{
    (void)state;
    begin(1, 0);
    make_hats();
    ask("POST", HATS,
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":\"h\"}}", 201);
    ask("DELETE", CRDS "?dryRun=All", "", 200);
    ask("GET", HATS "/h", "", 200);
    ask("DELETE", CRDS, "", 200);
    ask("GET", CRDS "/hats.example.com", "", 404);
    end();
}

enum { LARGE_ITEMS = 1000000 };

/* An object that cannot be converted for lack of memory must not be skipped. */
static void lack_of_memory_is_not_reported_as_an_invalid_object(void **state)
{
    (void)state;
    begin(3, 0);
    bed->config.skip_undecodable = true;
    const char *schema = "[{\"op\":\"add\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/"
                         "description\",\"value\":\"a hat\"}]";
    struct buf text = {0};
    make_hats();
    assert_int_equal(buf_append_text(&text, "{\"kind\":\"Hat\",\"apiVersion\":\"example.com/v1\","
                                            "\"metadata\":{\"name\":\"h\"},\"items\":[0"),
                     ST_OK);
    for (int i = 0; i < LARGE_ITEMS; i++)
        assert_int_equal(buf_append_text(&text, ",0"), ST_OK);
    assert_int_equal(buf_append_text(&text, "]}"), ST_OK);
    store("/registry/example.com/hats/h", buf_slice(&text));
    buf_fini(&text);
    struct peer *changed =
        send("PATCH", CRDS "/hats.example.com", "application/json-patch+json", schema);
    run();
    assert_answer(changed, 200, NULL);
    struct peer *list = send_json("GET", HATS, "");
    for (int i = 0; i < 10; i++) {
        uint8_t bytes[4096];
        run();
        size_t n =
            http_exchange_flows(&list->x) ? http_exchange_fill(&list->x, bytes, sizeof(bytes)) : 0;
        assert_int_equal(buf_append(&list->answer, slice_of(bytes, n)), ST_OK);
    }
    assert_true(said(list, "\"items\":["));
    assert_false(said(list, "]")); /* cut off, not empty */
    ask("DELETE", HATS, "", 429);
    end();
}

/* Larger than the memory of one call. */
static void an_object_that_does_not_fit_only_fails_its_own_delete(void **state)
{
    (void)state;
    begin(4, 0);
    struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                            "\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\""),
                     ST_OK);
    assert_int_equal(buf_reserve(&text, KUBE_CALL_ARENA_BYTES_MAX + 8), ST_OK);
    memset(text.ptr + text.len, 'x', KUBE_CALL_ARENA_BYTES_MAX);
    text.len += KUBE_CALL_ARENA_BYTES_MAX;
    assert_int_equal(buf_append_text(&text, "\"}}"), ST_OK);
    store("/registry/configmaps/default/c", buf_slice(&text));
    buf_fini(&text);
    ask("GET", CMS "/c", "", 429);
    end();
}

static void store_configmaps(int count, size_t value_bytes)
{
    AUTO(buf_fini) struct buf text = {0};
    char key[64];
    assert_int_equal(buf_append_text(&text, "{\"data\":{\"k\":\""), ST_OK);
    for (size_t i = 0; i < value_bytes; i++)
        assert_int_equal(buf_append_text(&text, "x"), ST_OK);
    assert_int_equal(buf_append_text(&text, "\"},\"metadata\":{\"name\":\"c\"}}"), ST_OK);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "/registry/configmaps/default/c%04d", i);
        store(key, buf_slice(&text));
    }
    ask("GET", "/api/v1/namespaces/default", "", 200);
}

enum { MANY = 3000, SMALL_ARENA = 64 << 10 };

/* Any number of objects takes no more memory than one page. */
static void any_number_is_deleted_in_a_small_arena(void **state)
{
    (void)state;
    begin(7, 100);
    store_configmaps(MANY, 1);
    bed->api->call_bytes_max = SMALL_ARENA;
    ask("DELETE", CMS, "", 200);
    assert_true(said(ask("GET", CMS "?limit=1", "", 200), "\"items\":[]"));
    end();
}

enum { ITEMS = 40, ITEM_BYTES = 50000, ITEMS_BUDGET = 1 << 20 };

/* The answer grows while they are deleted: it is charged, and above the budget the client has
 * to request the rest again. */
static void items_of_the_answer_are_charged(void **state)
{
    (void)state;
    struct budget *budget;
    begin(8, 100);
    store_configmaps(ITEMS, ITEM_BYTES);
    assert_int_equal(budget_new(ITEMS_BUDGET, &budget), ST_OK);
    assert_int_equal(account_new(budget, &bed->account), ST_OK);
    struct peer *first = ask("DELETE", CMS, "", 429);
    assert_true(said(first, "--max-client-bytes"));
    leave(first);
    assert_int_equal(account_held_bytes(bed->account), 0);
    unsigned tries = 0, code;
    do {
        assert_true(tries++ < ITEMS);
        struct peer *next = send_json("DELETE", CMS, "");
        run();
        leave(next);
        code = next->code;
    } while (code == 429);
    assert_true(tries > 1);
    struct account *account = bed->account;
    bed->account = NULL;
    assert_true(said(ask("GET", CMS "?limit=1", "", 200), "\"items\":[]"));
    end();
    account_unref(account);
    budget_free(budget);
}

static void options_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    begin(9, 100);
    store_configmaps(1, 1);
    ask("DELETE", CMS, "[]", 400);
    ask("DELETE", CMS "?labelSelector=a%20b", "", 400);
    ask("GET", CMS "/c0000", "", 200);
    end();
}

enum { HEAVY = 20, HEAVY_BYTES = 128 << 10, HEAVY_A_TURN = 3 };

/* None of them matches, and each must be examined to its end. */
static void large_objects_are_examined_some_per_turn(void **state)
{
    (void)state;
    begin(5, 100);
    store_configmaps(HEAVY, HEAVY_BYTES);
    struct peer *all = send_json("DELETE", CMS "?labelSelector=a", "");
    int turns = 0;
    for (; !all->code; turns++) {
        loop_turn(bed->loop, 0);
        (void)fake_step(bed->engine);
    }
    assert_answer(all, 200, "\"items\":[]");
    assert_true(turns >= HEAVY / HEAVY_A_TURN);
    end();
}

/* Fills `token` with the continue token of an answer; false: it has none. */
static bool find_token(struct peer *peer, char *token, size_t size)
{
    static const char key[] = "\"continue\":\"";
    const char *at = memmem(peer->answer.ptr, peer->answer.len, key, strlen(key));
    if (!at)
        return false;
    at += strlen(key);
    snprintf(token, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static void pages_pass_objects_that_their_finalizers_hold(void **state)
{
    (void)state;
    begin(2, 0);
    char name[16], path[384] = CMS "?limit=1", token[256];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        make(name, ",\"finalizers\":[\"example.com/x\"]");
    }
    int pages = 1;
    struct peer *page = ask("DELETE", path, "", 200);
    for (; find_token(page, token, sizeof(token)); pages++) {
        assert_true(pages < 3);
        snprintf(path, sizeof(path), CMS "?limit=1&continue=%s", token);
        page = ask("DELETE", path, "", 200);
        snprintf(name, sizeof(name), "c%d", pages);
        assert_true(said(page, name));
    }
    assert_int_equal(pages, 3);
    end();
}

/* An object that stops matching after the page was read is deleted before its change or not at
 * all. */
static void selectors_are_checked_when_an_object_is_deleted(void **state)
{
    (void)state;
    unsigned kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed, 0);
        char name[16];
        for (int i = 0; i < OBJECTS; i++) {
            snprintf(name, sizeof(name), "c%02d", i);
            make(name, ",\"labels\":{\"n\":\"1\"}");
        }
        struct peer *all = send_json("DELETE", CMS "?labelSelector=n%3D1", "");
        for (uint64_t i = 0; i < seed; i++) {
            loop_turn(bed->loop, 0);
            (void)fake_step(bed->engine);
        }
        struct peer *change = send_patch(CMS "/c11", "{\"metadata\":{\"labels\":{\"n\":\"2\"}}}");
        run();
        assert_answer(all, 200, NULL);
        bool changed = change->code == 200;
        kept += changed;
        assert_true(said(all, "\"name\":\"c11\"") == !changed);
        ask("GET", CMS "/c11", "", changed ? 200 : 404);
        end();
    }
    assert_true(kept > 0 && kept < SEEDS);
}

/* A delete has no field manager, and all faults of its options are reported. */
static void options_of_a_delete_are_checked_as_in_kubernetes(void **state)
{
    (void)state;
    begin(1, 100);
    make("a", "");
    struct peer *peer = ask("DELETE", CMS "/a",
                            "{\"orphanDependents\":true,\"propagationPolicy\":\"No\","
                            "\"dryRun\":[\"Al\"]}",
                            422);
    assert_true(said(peer, "cannot be both set"));
    assert_true(said(peer, "\\\"No\\\": supported values"));
    assert_true(said(peer, "\"field\":\"dryRun\""));
    char path[320];
    snprintf(path, sizeof(path), CMS "/a?dryRun=All&fieldManager=%0200d", 1);
    ask("DELETE", path, "", 200);
    ask("PATCH", path, "{}", 422);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_deleted_together_are_purged),
        cmocka_unit_test(lack_of_memory_is_not_reported_as_an_invalid_object),
        cmocka_unit_test(an_object_that_does_not_fit_only_fails_its_own_delete),
        cmocka_unit_test(any_number_is_deleted_in_a_small_arena),
        cmocka_unit_test(items_of_the_answer_are_charged),
        cmocka_unit_test(options_that_cannot_be_read_are_refused),
        cmocka_unit_test(large_objects_are_examined_some_per_turn),
        cmocka_unit_test(pages_pass_objects_that_their_finalizers_hold),
        cmocka_unit_test(selectors_are_checked_when_an_object_is_deleted),
        cmocka_unit_test(options_of_a_delete_are_checked_as_in_kubernetes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
