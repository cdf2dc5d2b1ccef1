#include "kube/lookup/lookup.h"

#include "kube/server/bed_test.h"

#define PREFIX "/registry/things/"
enum { SMALL_BYTES_MAX = 64 << 10, SMALL_OBJECTS_MAX = 20 };

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

static void open_lookup(size_t bytes_max, size_t objects_max)
{
    lookup = kube_lookup_new(&(struct kube_lookup_options){
        .shard = bed->shard,
        .loop = bed->loop,
        .under_way = &bed->api->under_way,
        .prefix = PREFIX,
        .namespaced = true,
        .read = read_value,
        .bytes_max = bytes_max,
        .objects_max = objects_max,
    });
}

static void close_lookup(void)
{
    kube_lookup_stop(lookup);
    run();
    kube_lookup_check(lookup);
    kube_lookup_free(lookup);
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
    const struct kube_lookup_object *object =
        kube_lookup_get(lookup, slice_from_text(namespace), slice_from_text(name));
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
    kube_lookup_each(lookup, slice_from_text(namespace), append_name, &text);
    assert_true(slice_equal(buf_slice(&text), slice_from_text(names)));
}

static void objects_are_loaded_at_the_first_use_and_then_followed(void **state)
{
    (void)state;
    begin(1, 50);
    put_thing("a/x", "1");
    put_thing("a-b/y", "2");
    write_key("a/broken", "{\"value\":");
    open_lookup(0, 0);
    run();
    assert_false(kube_lookup_ready(lookup));
    load();
    assert_int_equal(waited, ST_OK);
    assert_true(kube_lookup_ready(lookup));
    assert_string_equal(value_of("a", "x"), "1");
    assert_null(value_of("a", "broken"));
    assert_int_equal(kube_lookup_left_out(lookup), 1);

    put_thing("a/x", "3");
    put_thing("a/z", "4");
    put_thing("c/x", "5");
    assert_string_equal(value_of("a", "x"), "3");
    assert_names("a", "a/x a/z ");
    assert_names("a-b", "a-b/y ");
    assert_names("", "a-b/y a/x a/z c/x ");
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
    open_lookup(0, 0);
    load();
    const struct kube_lookup_object *held =
        kube_lookup_get(lookup, SLICE_LITERAL("a"), SLICE_LITERAL("x"));
    kube_lookup_hold(held);
    put_thing("a/x", "2");
    assert_string_equal(value_of("a", "x"), "2");
    assert_string_equal(held->data, "1");
    close_lookup();
    assert_string_equal(held->data, "1");
    assert_true(slice_equal(held->name, SLICE_LITERAL("x")));
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
        open_lookup(0, 0);
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

static void objects_past_the_limits_are_left_out(void **state)
{
    static char text[KUBE_LOOKUP_OBJECT_BYTES_MAX + 64];
    (void)state;
    begin(1, 100);
    open_lookup(SMALL_BYTES_MAX, SMALL_OBJECTS_MAX);
    /* The whole object is one byte too long, then it is not; then all are too large. */
    memset(text, 'v', KUBE_LOOKUP_OBJECT_BYTES_MAX - 11);
    put_thing("a/long", text);
    load();
    assert_int_equal(kube_lookup_left_out(lookup), 1);
    assert_null(value_of("a", "long"));
    memset(text, 0, sizeof(text));
    memset(text, 'v', SMALL_BYTES_MAX - 4096);
    put_thing("a/long", text);
    assert_non_null(value_of("a", "long"));
    put_thing("a/next", text);
    assert_null(value_of("a", "next"));
    kube_lookup_check(lookup);
    write_key("a/long", NULL);
    assert_null(value_of("a", "next"));
    /* There is room again, after a while. */
    clock_sim_advance(&bed->clock, 61 * NS_PER_S);
    run_watching();
    assert_non_null(value_of("a", "next"));
    assert_int_equal(kube_lookup_left_out(lookup), 0);
    write_key("a/next", NULL);

    for (int i = 0; i <= SMALL_OBJECTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "b/%02d", i);
        put_thing(name, "v");
    }
    assert_int_equal(kube_lookup_count(lookup), SMALL_OBJECTS_MAX);
    assert_int_equal(kube_lookup_left_out(lookup), 1);
    kube_lookup_check(lookup);
    close_lookup();
}

/* An object of the largest length is read, whatever it takes. */
static void the_longest_object_is_read(void **state)
{
    static char text[KUBE_LOOKUP_OBJECT_BYTES_MAX];
    (void)state;
    begin(1, 100);
    memset(text, 'v', KUBE_LOOKUP_OBJECT_BYTES_MAX - 12);
    put_thing("a/long", text);
    open_lookup(0, 0);
    load();
    assert_non_null(value_of("a", "long"));
    close_lookup();
}

static void names_that_are_too_long_are_not_found(void **state)
{
    char name[2000];
    (void)state;
    begin(1, 100);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    open_lookup(0, 0);
    load();
    assert_null(value_of("a", name));
    assert_null(value_of(name, "a"));
    close_lookup();
}

static void a_stop_ends_the_waits(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 6; turns++) {
        begin(turns, 0);
        put_thing("a/x", "1");
        open_lookup(0, 0);
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
        cmocka_unit_test(objects_past_the_limits_are_left_out),
        cmocka_unit_test(the_longest_object_is_read),
        cmocka_unit_test(names_that_are_too_long_are_not_found),
        cmocka_unit_test(a_stop_ends_the_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
