#include "kube/handlers/read/object_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char stored[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                             "\"a\"},\"spec\":{}}";
static const char sent[] =
    "made[{\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"a\"},\"spec\":{}}]";

static void set(struct kube_object_writer *writer)
{
    struct kube_object object;
    assert_int_equal(kube_object_parse(slice_from_text(stored), &object), ST_OK);
    assert_int_equal(buf_append_text(&writer->made, "made"), ST_OK);
    kube_object_writer_set_object(writer, SLICE_LITERAL("["), &object, 7, true, SLICE_LITERAL("]"));
}

static void every_piece_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (size_t room = 1; room < sizeof(sent) + 1; room++) {
        struct kube_object_writer writer = {0};
        uint8_t got[sizeof(sent)];
        size_t len = 0;
        set(&writer);
        while (!kube_object_writer_empty(&writer)) {
            size_t n =
                kube_object_writer_fill(&writer, got + len, size_min(room, sizeof(got) - len));
            assert_true(n > 0);
            len += n;
        }
        assert_int_equal(len, sizeof(sent) - 1);
        assert_memory_equal(got, sent, len);
        assert_null(writer.made.ptr);
    }
}

static void unsent_bytes_are_freed(void **state)
{
    (void)state;
    struct kube_object_writer writer = {0};
    uint8_t got[3];
    set(&writer);
    assert_int_equal(kube_object_writer_fill(&writer, got, sizeof(got)), 3);
    kube_object_writer_fini(&writer);
    assert_true(kube_object_writer_empty(&writer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_may_be_cut_anywhere),
        cmocka_unit_test(unsent_bytes_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
