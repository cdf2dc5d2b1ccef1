/* Events from changes: every transition of the selection, errors, and what is released. */
#include "client/watch/object.h"

#include "base/failing_memory_test.h"
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The values are one letter: upper case is selected, and '?' cannot be decoded. */
static long live; /* decoded objects that have not been released */
static long decodes;

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    const char *value = object->value.data;
    decodes++;
    assert_ptr_equal(user, &live);
    assert_int_equal(object->value.size, 1);
    if (*value == '?') {
        snprintf(error->text, sizeof(error->text), "a question");
        return -1;
    }
    if (*value == '!')
        return 1; /* without a text */
    object->decoded = malloc(1);
    assert_non_null(object->decoded);
    memcpy(object->decoded, value, 1);
    live++;
    return 0;
}

static void release(void *decoded)
{
    live--;
    free(decoded);
}

static int matches(const vigil_object *object, void *user)
{
    char letter = *(const char *)(object->decoded ? object->decoded : object->value.data);
    assert_ptr_equal(user, &live);
    return letter >= 'A' && letter <= 'Z';
}

static const struct object_hooks every_hook = {decode, release, matches, &live};
static const struct object_hooks only_decode = {decode, release, NULL, &live};
static const struct object_hooks only_matches = {NULL, NULL, matches, &live};
static const struct object_hooks no_hook;

/* NULL: the key did not exist, or was deleted. */
static struct object_change change_of(const char *before, const char *after)
{
    return (struct object_change){
        .key = vigil_text("k"),
        .value = vigil_text(after),
        .prev_value = vigil_text(before),
        .revision = 7,
        .has_value = after != NULL,
        .has_prev_value = before != NULL,
    };
}

/* Returns the type of the event; -1: none; -2: cannot be decoded. */
static int type_of(const struct object_hooks *hooks, const char *before, const char *after)
{
    struct object_batch batch;
    struct object_change change = change_of(before, after);
    vigil_error error;
    int type = -1;
    object_batch_init(&batch, hooks);
    assert_int_equal(object_batch_reserve(&batch, 1), ST_OK);
    if (!object_batch_change(&batch, &change, &error)) {
        assert_int_equal(error.code, VIGIL_ERROR_DECODE);
        type = -2;
    } else if (batch.count) {
        const vigil_object *object = &batch.events[0].object;
        type = batch.events[0].type;
        const char *value = type == VIGIL_OBJECT_DELETED ? before : after;
        assert_memory_equal(object->value.data, value, 1);
        assert_int_equal(object->revision, 7);
        assert_int_equal(object->decoded != NULL, hooks->decode != NULL);
        if (object->decoded)
            assert_memory_equal(object->decoded, value, 1);
    }
    assert_int_equal(batch.filtered, type == -1);
    object_batch_check(&batch);
    object_batch_clear(&batch);
    object_batch_fini(&batch);
    assert_int_equal(live, 0);
    return type;
}

static void selection_before_and_after_decides(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        int type;
    } rows[] = {
        {NULL, "A", VIGIL_OBJECT_ADDED},   {NULL, "a", -1},
        {"a", "A", VIGIL_OBJECT_ADDED},    {"a", "b", -1},
        {"A", "B", VIGIL_OBJECT_MODIFIED}, {"A", "b", VIGIL_OBJECT_DELETED},
        {"A", NULL, VIGIL_OBJECT_DELETED}, {"a", NULL, -1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(type_of(&every_hook, rows[i].before, rows[i].after), rows[i].type);
        assert_int_equal(type_of(&only_matches, rows[i].before, rows[i].after), rows[i].type);
    }
}

static void without_selection_every_change_is_an_event(void **state)
{
    (void)state;
    const struct object_hooks *hooks[] = {&only_decode, &no_hook};
    for (size_t i = 0; i < COUNT_OF(hooks); i++) {
        assert_int_equal(type_of(hooks[i], NULL, "a"), VIGIL_OBJECT_ADDED);
        assert_int_equal(type_of(hooks[i], "a", "b"), VIGIL_OBJECT_MODIFIED);
        assert_int_equal(type_of(hooks[i], "a", NULL), VIGIL_OBJECT_DELETED);
    }
    decodes = 0;
    assert_int_equal(type_of(&only_decode, "?", "a"), VIGIL_OBJECT_MODIFIED);
    assert_int_equal(decodes, 1); /* the value before it does not matter */
}

static void value_that_cannot_be_decoded_is_reported(void **state)
{
    (void)state;
    assert_int_equal(type_of(&every_hook, NULL, "?"), -2);
    assert_int_equal(type_of(&every_hook, "?", "A"), -2);
    assert_int_equal(type_of(&every_hook, "A", "?"), -2);
    assert_int_equal(type_of(&every_hook, "?", NULL), -2);
    struct object_batch batch;
    struct object_change change = change_of(NULL, "?");
    vigil_error error;
    object_batch_init(&batch, &every_hook);
    assert_false(object_batch_change(&batch, &change, &error));
    assert_string_equal(error.text, "a question");
    change = change_of(NULL, "!");
    assert_false(object_batch_change(&batch, &change, &error));
    assert_string_equal(error.text, "a value cannot be decoded");
    object_batch_fini(&batch);
}

static void program_can_keep_an_object(void **state)
{
    (void)state;
    struct object_batch batch;
    struct object_change change = change_of(NULL, "A");
    vigil_error error;
    object_batch_init(&batch, &every_hook);
    assert_int_equal(object_batch_reserve(&batch, 2), ST_OK);
    assert_true(object_batch_change(&batch, &change, &error));
    assert_true(object_batch_change(&batch, &change, &error));
    void *kept = batch.events[0].object.decoded;
    batch.events[0].object.decoded = NULL;
    object_batch_clear(&batch);
    object_batch_fini(&batch);
    assert_int_equal(live, 1);
    release(kept);
}

static void errors_have_the_words_of_kubernetes(void **state)
{
    (void)state;
    struct object_batch batch;
    const vigil_error cause = {.code = VIGIL_ERROR_COMPACTED, .grpc_code = 11, .text = "cause"};
    object_batch_init(&batch, &no_hook);
    object_batch_internal_error(&batch, &cause);
    assert_true(object_batch_has_error(&batch));
    assert_ptr_equal(batch.events[0].error, &batch.error);
    assert_int_equal(batch.error.status, 500);
    assert_string_equal(batch.error.reason, "InternalError");
    assert_string_equal(batch.error.error.text, "Internal error occurred: cause");
    object_batch_clear(&batch);
    object_batch_read_error(&batch, &cause);
    assert_int_equal(batch.error.status, 500);
    assert_string_equal(batch.error.reason, "StorageReadError");
    assert_string_equal(batch.error.error.text,
                        "saw a DELETED event, but object data is corrupt - cause");
    object_batch_clear(&batch);
    object_batch_expired(&batch, &cause, 9);
    object_batch_check(&batch);
    assert_int_equal(batch.error.status, 410);
    assert_string_equal(batch.error.reason, "Expired");
    assert_int_equal(batch.error.compact_revision, 9);
    assert_int_equal(batch.error.error.code, VIGIL_ERROR_COMPACTED);
    assert_int_equal(batch.error.error.grpc_code, 11);
    assert_string_equal(batch.error.error.text,
                        "The resourceVersion for the provided watch is too old.");
    object_batch_clear(&batch);
    object_batch_fini(&batch);
}

static void large_batch_gives_its_memory_back(void **state)
{
    (void)state;
    enum { EVENTS = 1000 };
    struct object_batch batch;
    vigil_error error;
    object_batch_init(&batch, &every_hook);
    assert_int_equal(object_batch_reserve(&batch, EVENTS), ST_OK);
    for (int i = 0; i < EVENTS; i++) {
        struct object_change change = change_of(NULL, i % 2 ? "A" : "a");
        assert_true(object_batch_change(&batch, &change, &error));
    }
    assert_int_equal(batch.count, EVENTS / 2);
    assert_int_equal(batch.filtered, EVENTS / 2);
    object_batch_clear(&batch);
    assert_int_equal(live, 0);
    assert_ptr_equal(batch.events, batch.first);
    object_batch_fini(&batch);
}

static void without_memory_an_error_fits(void **state)
{
    (void)state;
    struct object_batch batch;
    const vigil_error cause = {.code = VIGIL_ERROR_MEMORY};
    object_batch_init(&batch, &no_hook);
    for (int i = 0; i < 2; i++) { /* also after a batch that was larger */
        memory_fail_at = 1;
        assert_int_equal(object_batch_reserve(&batch, 1000), ST_NOMEM);
        memory_fail_at = 0;
        object_batch_internal_error(&batch, &cause);
        object_batch_check(&batch);
        object_batch_clear(&batch);
        assert_int_equal(object_batch_reserve(&batch, 10), ST_OK);
    }
    object_batch_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selection_before_and_after_decides),
        cmocka_unit_test(without_selection_every_change_is_an_event),
        cmocka_unit_test(value_that_cannot_be_decoded_is_reported),
        cmocka_unit_test(program_can_keep_an_object),
        cmocka_unit_test(errors_have_the_words_of_kubernetes),
        cmocka_unit_test(large_batch_gives_its_memory_back),
        cmocka_unit_test(without_memory_an_error_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
