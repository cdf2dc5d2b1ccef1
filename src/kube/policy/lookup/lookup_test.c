#include "kube/policy/lookup/lookup.h"

#include "kube/policy/lookup/read.h"
#include "kube/server/bed_test.h"

#define PREFIX "/registry/things/"
enum { SMALL_BYTES_MAX = 64 << 10 };

static struct kube_lookup_pool *pool;
static struct kube_lookup *lookup;

/* The member "value" of an object, as a text that ends with NUL. */
static const void *read_value(struct arena *arena, const struct json_node *object)
{
    struct slice text, copy;
    if (json_node_text(json_node_named(object, "value"), arena, &text) != ST_OK || !text.len)
        return NULL;
    uint8_t *bytes = arena_alloc(arena, text.len + 1);
    if (!bytes)
        return NULL;
    copy = slice_of(bytes, text.len);
    slice_copy(bytes, text);
    bytes[copy.len] = 0;
    return bytes;
}

static const struct kube_lookup_kind things = {
    .prefix = PREFIX, .namespaced = true, .read = read_value};

static struct kube_lookup *new_lookup(size_t bytes_max)
{
    return kube_lookup_new(&(struct kube_lookup_options){
        .shard = bed->shard,
        .loop = bed->loop,
        .under_way = &bed->api->under_way,
        .stock = kube_lookup_pool_get(pool, &things, bytes_max),
    });
}

static void open_lookup(size_t bytes_max)
{
    pool = kube_lookup_pool_new(NULL);
    lookup = new_lookup(bytes_max);
}

static void close_lookup(void)
{
    kube_lookup_stop(lookup);
    run();
    kube_lookup_check(lookup);
    kube_lookup_free(lookup);
    kube_lookup_pool_free(pool);
    end();
}

static enum status waited;
static unsigned gone;

static void on_go(struct kube_lookup_wait *wait)
{
    waited = wait->status;
    gone++;
}

static void load(void)
{
    static struct kube_lookup_wait wait;
    wait = (struct kube_lookup_wait){.go = on_go};
    gone = 0;
    kube_lookup_wait(lookup, &wait);
    run();
    assert_int_equal(gone, 1);
    kube_lookup_check(lookup);
}

static void on_written(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
    engine_write_close(CONTAINER_OF(op, struct engine_write, op));
}

/* value NULL: the key is deleted. */
static void write_key(const char *name, const char *value)
{
    char key[256];
    snprintf(key, sizeof(key), PREFIX "%s", name);
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_write write = {
        .op = {.done = on_written, .arena = &arena, .principal = ENGINE_SERVER}};
    struct pb_put_request put = {.key = slice_from_text(key),
                                 .value = slice_from_text(value ? value : "")};
    struct pb_delete_range_request delete = {.key = slice_from_text(key)};
    if (value)
        engine_put(bed->shard, &write, &put);
    else
        engine_delete_range(bed->shard, &write, &delete);
    run_watching();
    arena_fini(&arena);
}

static void put_thing(const char *name, const char *value)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_format(&text, "{\"value\":\"%s\"}", value), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    write_key(name, (const char *)text.ptr);
}

static const char *value_of(const char *namespace, const char *name)
{
    const struct kube_shelf *shelf = kube_lookup_shelf(lookup, slice_from_text(namespace));
    const struct kube_lookup_object *object =
        shelf ? kube_shelf_get(shelf, slice_from_text(name)) : NULL;
    return object ? object->data : NULL;
}

static bool append_name(void *ctx, const struct kube_lookup_object *object)
{
    assert_int_equal(buf_append_format(ctx, "%.*s/%.*s ", SLICE_ARGS(object->namespace),
                                       SLICE_ARGS(object->name)),
                     ST_OK);
    return true;
}

static void assert_names(const char *namespace, const char *names)
{
    AUTO(buf_fini) struct buf text = {0};
    kube_shelf_each(kube_lookup_shelf(lookup, slice_from_text(namespace)), append_name, &text);
    assert_true(slice_is(buf_slice(&text), names));
}

static void objects_are_loaded_at_the_first_use_and_then_followed(void **state)
{
    (void)state;
    begin(1, 50);
    put_thing("a/x", "1");
    put_thing("a-b/y", "2");
    write_key("a/broken", "{\"value\":");
    open_lookup(0);
    run();
    assert_false(kube_lookup_ready(lookup));
    load();
    assert_int_equal(waited, ST_OK);
    assert_true(kube_lookup_ready(lookup));
    assert_string_equal(value_of("a", "x"), "1");
    assert_null(value_of("a", "broken"));
    assert_int_equal(kube_lookup_shelf(lookup, SLICE_LITERAL("a"))->unreadable, 1);
    assert_int_equal(kube_lookup_shelf(lookup, SLICE_LITERAL("a-b"))->unreadable, 0);

    put_thing("a/broken", "6");
    assert_int_equal(kube_lookup_shelf(lookup, SLICE_LITERAL("a"))->unreadable, 0);
    write_key("a/broken", NULL);
    put_thing("a/x", "3");
    put_thing("a/z", "4");
    put_thing("c/x", "5");
    assert_string_equal(value_of("a", "x"), "3");
    assert_names("a", "a/x a/z ");
    assert_names("a-b", "a-b/y ");
    assert_names("b", "");
    write_key("a/x", NULL);
    assert_null(value_of("a", "x"));
    assert_names("a", "a/z ");
    assert_int_equal(kube_lookup_count(lookup), 3);
    close_lookup();
}

static void a_version_that_is_held_outlives_its_successor_and_the_lookup(void **state)
{
    (void)state;
    begin(1, 50);
    put_thing("a/x", "1");
    open_lookup(0);
    load();
    const struct kube_lookup_object *held =
        kube_shelf_get(kube_lookup_shelf(lookup, SLICE_LITERAL("a")), SLICE_LITERAL("x"));
    kube_lookup_hold(held);
    put_thing("a/x", "2");
    assert_string_equal(value_of("a", "x"), "2");
    assert_string_equal(held->data, "1");
    close_lookup();
    assert_string_equal(held->data, "1");
    assert_true(slice_is(held->name, "x"));
    kube_lookup_release(held);
    kube_lookup_release(NULL);
}

static void an_object_that_changes_while_all_are_read_is_current(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 12; turns++) {
        begin(turns, 0);
        for (int i = 0; i < 40; i++) {
            char name[16], value[4096];
            snprintf(name, sizeof(name), "n/%02d", i);
            memset(value, 'v', sizeof(value) - 1);
            value[sizeof(value) - 1] = 0;
            put_thing(name, value);
        }
        open_lookup(0);
        struct kube_lookup_wait wait = {.go = on_go};
        gone = 0;
        kube_lookup_wait(lookup, &wait);
        for (unsigned i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        put_thing("n/05", "new");
        put_thing("n/99", "more");
        write_key("n/06", NULL);
        assert_int_equal(gone, 1);
        kube_lookup_check(lookup);
        assert_string_equal(value_of("n", "05"), "new");
        assert_string_equal(value_of("n", "99"), "more");
        assert_null(value_of("n", "06"));
        assert_int_equal(kube_lookup_count(lookup), 40);
        close_lookup();
    }
}

/* -- What is not held -- */

static struct kube_lookup_read reading;
static unsigned read_count;

static void on_read(struct kube_lookup_read *read)
{
    assert_ptr_equal(read, &reading);
    read_count++;
}

static bool is_second(void *ctx, const struct kube_lookup_object *object)
{
    (void)ctx;
    return slice_is(object->name, "01");
}

/* Returns what was read; the caller finishes `reading`. */
static const struct kube_shelf *read_some(const char *namespace, const char *name, bool second)
{
    reading = (struct kube_lookup_read){
        .namespace = slice_from_text(namespace),
        .name = slice_from_text(name),
        .wants = second ? is_second : NULL,
        .go = on_read,
    };
    read_count = 0;
    kube_lookup_read_start(lookup, &reading);
    run();
    assert_int_equal(read_count, 1);
    return reading.shelf;
}

static void fill(const char *namespace, int count, size_t bytes)
{
    AUTO(buf_fini) struct buf value = {0};
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(buf_append(&value, slice_of("v", 1)), ST_OK);
    assert_int_equal(buf_append(&value, slice_of("", 1)), ST_OK);
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s/%02d", namespace, i);
        put_thing(name, (const char *)value.ptr);
    }
}

/* Whichever comes first by name, and whether objects are loaded or arrive as events. */
static void a_namespace_that_takes_too_much_is_read_and_others_are_not_affected(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin(1, 100);
        open_lookup(SMALL_BYTES_MAX);
        fill("b", 2, 10);
        fill("z", 2, 10);
        if (late)
            load();
        fill("m", 40, 4000);
        put_thing("a/00", "new");
        if (!late)
            load();
        kube_lookup_check(lookup);
        assert_int_equal(kube_lookup_not_held(lookup), 1);
        assert_null(kube_lookup_shelf(lookup, SLICE_LITERAL("m")));
        assert_string_equal(value_of("b", "01"), "vvvvvvvvvv");
        assert_string_equal(value_of("z", "01"), "vvvvvvvvvv");
        assert_string_equal(value_of("a", "00"), "new");

        const struct kube_shelf *shelf = read_some("m", "", false);
        assert_int_equal(reading.status, ST_OK);
        assert_int_equal(kube_shelf_count(shelf), 40);
        kube_shelf_check(shelf);
        kube_lookup_read_fini(&reading);
        shelf = read_some("m", "", true);
        assert_int_equal(kube_shelf_count(shelf), 1);
        assert_non_null(kube_shelf_get(shelf, SLICE_LITERAL("01")));
        kube_lookup_read_fini(&reading);
        shelf = read_some("m", "07", false);
        assert_int_equal(kube_shelf_count(shelf), 1);
        kube_lookup_read_fini(&reading);
        shelf = read_some("m", "none", false);
        assert_int_equal(kube_shelf_count(shelf), 0);
        kube_lookup_read_fini(&reading);
        close_lookup();
    }
}

/* The largest is not held: two that are smaller than their share stay. */
static void the_room_is_shared_by_namespaces(void **state)
{
    (void)state;
    begin(1, 100);
    open_lookup(SMALL_BYTES_MAX);
    load();
    fill("a", 5, 4000);
    fill("b", 5, 4000);
    fill("c", 4, 4000);
    assert_int_equal(kube_lookup_not_held(lookup), 1);
    assert_non_null(kube_lookup_shelf(lookup, SLICE_LITERAL("c")));
    fill("d", 5, 4000);
    assert_non_null(kube_lookup_shelf(lookup, SLICE_LITERAL("c")));
    assert_int_equal(kube_lookup_not_held(lookup), 2);
    kube_lookup_check(lookup);

    /* There is room again, after a while. */
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a/%02d", i);
        write_key(name, NULL);
        snprintf(name, sizeof(name), "d/%02d", i);
        write_key(name, NULL);
    }
    clock_sim_advance(&bed->clock, 61 * NS_PER_S);
    run_watching();
    assert_int_equal(kube_lookup_not_held(lookup), 0);
    assert_non_null(value_of("b", "04"));
    assert_int_equal(kube_lookup_count(lookup), 9);
    kube_lookup_check(lookup);
    close_lookup();
}

/* An object of any length is read, whatever it takes. */
static void a_long_object_is_read(void **state)
{
    (void)state;
    begin(1, 100);
    fill("a", 1, 1500 << 10);
    open_lookup(0);
    load();
    assert_non_null(value_of("a", "00"));
    close_lookup();
}

static struct kube_lookup_read many[12];
static unsigned ended, cancelled;

static void on_one_of_many(struct kube_lookup_read *read)
{
    ended++;
    cancelled += read->status == ST_CANCELED;
    kube_lookup_read_fini(read);
}

/* Those of a client that has gone, and those that were given up, end without being read. */
static void readings_wait_for_their_turn_and_can_be_given_up(void **state)
{
    struct http_exchange *nobody = NULL;
    (void)state;
    begin(1, 0);
    open_lookup(SMALL_BYTES_MAX);
    load();
    fill("m", 40, 4000);
    ended = cancelled = 0;
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        many[i] = (struct kube_lookup_read){.namespace = SLICE_LITERAL("m"),
                                            .client = i == 5 ? &nobody : NULL,
                                            .go = on_one_of_many};
        kube_lookup_read_start(lookup, &many[i]);
    }
    assert_int_equal(ended, 0);
    kube_lookup_read_give_up(&many[0]); /* which is under way */
    kube_lookup_read_give_up(&many[11]);
    assert_int_equal(cancelled, 1);
    run();
    assert_int_equal(ended, COUNT_OF(many));
    assert_int_equal(cancelled, 3);
    close_lookup();
}

/* -- Several threads -- */

/* Two lookups of one stock, as two threads have them: the second reads nothing, and an event is
 * applied by whichever comes first. */
static void lookups_share_their_objects(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 12; turns++) {
        begin(turns, 50);
        fill("a", 30, 4000);
        open_lookup(0);
        struct kube_lookup *first = lookup, *second = new_lookup(0);
        struct kube_lookup_wait waits[] = {{.go = on_go}, {.go = on_go}};
        gone = 0;
        kube_lookup_wait(first, &waits[0]);
        for (unsigned i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        kube_lookup_wait(second, &waits[1]);
        run();
        clock_sim_advance(&bed->clock, 2 * NS_PER_MS);
        run_watching();
        assert_int_equal(gone, 2);
        const struct kube_lookup_object *one =
            kube_shelf_get(kube_lookup_shelf(first, SLICE_LITERAL("a")), SLICE_LITERAL("03"));
        const struct kube_lookup_object *other =
            kube_shelf_get(kube_lookup_shelf(second, SLICE_LITERAL("a")), SLICE_LITERAL("03"));
        assert_ptr_equal(one, other);
        put_thing("a/03", "new");
        write_key("a/04", NULL);
        for (int i = 0; i < 2; i++) {
            lookup = i ? second : first;
            assert_string_equal(value_of("a", "03"), "new");
            assert_null(value_of("a", "04"));
            assert_int_equal(kube_lookup_count(lookup), 29);
            kube_lookup_check(lookup);
        }
        kube_lookup_stop(first);
        put_thing("a/05", "later");
        assert_string_equal(value_of("a", "05"), "later"); /* the second one */
        kube_lookup_stop(second);
        run();
        kube_lookup_free(first);
        lookup = second;
        close_lookup();
    }
}

/* If the one that reads is stopped, the other one does it. */
static void another_lookup_reads_if_the_first_is_stopped(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 6; turns++) {
        begin(turns, 0);
        fill("a", 30, 4000);
        open_lookup(0);
        struct kube_lookup *first = lookup;
        struct kube_lookup_wait waits[] = {{.go = on_go}, {.go = on_go}};
        kube_lookup_wait(first, &waits[0]);
        lookup = new_lookup(0);
        kube_lookup_wait(lookup, &waits[1]);
        for (unsigned i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        kube_lookup_stop(first);
        run();
        clock_sim_advance(&bed->clock, 2 * NS_PER_MS);
        run_watching();
        assert_int_equal(waits[1].status, ST_OK);
        assert_int_equal(kube_lookup_count(lookup), 30);
        kube_lookup_free(first);
        close_lookup();
    }
}

/* A lookup that has not looked at the newest version does not say that there is nothing either. */
static void a_peek_says_that_there_is_nothing_only_if_that_is_known(void **state)
{
    (void)state;
    begin(1, 50);
    open_lookup(SMALL_BYTES_MAX);
    struct kube_lookup *first = lookup, *second = new_lookup(SMALL_BYTES_MAX);
    const struct kube_lookup_peek *peeks[] = {kube_lookup_peek(first), kube_lookup_peek(second)};
    assert_false(kube_lookup_is_empty(peeks[0]));
    load();
    assert_true(kube_lookup_ready(first));
    assert_true(kube_lookup_is_empty(peeks[0]));
    lookup = second;
    assert_false(kube_lookup_is_empty(peeks[1]));
    load();
    assert_true(kube_lookup_is_empty(peeks[1]));

    put_thing("a/x", "1");
    for (int i = 0; i < 2; i++)
        assert_false(kube_lookup_is_empty(peeks[i]));
    write_key("a/x", NULL);
    assert_true(kube_lookup_ready(first) && kube_lookup_ready(second));
    for (int i = 0; i < 2; i++)
        assert_true(kube_lookup_is_empty(peeks[i]));
    fill("m", 40, 4000);
    assert_int_equal(kube_lookup_not_held(first), 1);
    for (int i = 0; i < 2; i++)
        assert_false(kube_lookup_is_empty(peeks[i]));
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m/%02d", i);
        write_key(name, NULL);
    }
    kube_lookup_stop(first);
    assert_false(kube_lookup_is_empty(peeks[0]));
    kube_lookup_stop(second);
    run();
    kube_lookup_free(first);
    close_lookup();
}

static void a_stop_ends_the_waits(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 6; turns++) {
        begin(turns, 0);
        put_thing("a/x", "1");
        open_lookup(0);
        struct kube_lookup_wait wait = {.go = on_go};
        gone = 0;
        kube_lookup_wait(lookup, &wait);
        for (unsigned i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        close_lookup();
        assert_int_equal(gone, 1);
        assert_true(waited == ST_STOPPED || waited == ST_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_loaded_at_the_first_use_and_then_followed),
        cmocka_unit_test(a_version_that_is_held_outlives_its_successor_and_the_lookup),
        cmocka_unit_test(an_object_that_changes_while_all_are_read_is_current),
        cmocka_unit_test(a_namespace_that_takes_too_much_is_read_and_others_are_not_affected),
        cmocka_unit_test(the_room_is_shared_by_namespaces),
        cmocka_unit_test(a_long_object_is_read),
        cmocka_unit_test(readings_wait_for_their_turn_and_can_be_given_up),
        cmocka_unit_test(lookups_share_their_objects),
        cmocka_unit_test(another_lookup_reads_if_the_first_is_stopped),
        cmocka_unit_test(a_peek_says_that_there_is_nothing_only_if_that_is_known),
        cmocka_unit_test(a_stop_ends_the_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
