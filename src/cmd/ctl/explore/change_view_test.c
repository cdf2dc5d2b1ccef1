#include "cmd/ctl/explore/change_view.h"

#include "cmd/ctl/explore/output_test.h"

static vigil_kv kv_of(const char *key, const char *value, int64_t version)
{
    return (vigil_kv){.key = vigil_text(key),
                      .value = vigil_text(value),
                      .create_revision = 5,
                      .mod_revision = 4 + version,
                      .version = version};
}

static void show(struct output *output, const vigil_event *event, bool old_times)
{
    struct change_view view;
    change_view_init(&view, &output->ctl);
    view.old_times = old_times;
    change_view_show(&view, event, INT64_C(1700000000123000000));
}

static void changes_have_a_time_and_a_difference(void **state)
{
    struct output output;
    vigil_kv before = kv_of("/a", "x\ny\n", 1), after = kv_of("/a", "x\nz\n", 2);
    vigil_kv gone = {.key = vigil_text("/a"), .mod_revision = 9};
    vigil_event created = {.type = VIGIL_PUT, .kv = &before};
    vigil_event changed = {.type = VIGIL_PUT, .kv = &after, .prev_kv = &before};
    vigil_event deleted = {.type = VIGIL_DELETE, .kv = &gone, .prev_kv = &after};
    (void)state;
    setenv("TZ", "UTC", 1);
    after.lease = 0x1f;
    output_init(&output, CTL_SIMPLE, DECODE_AUTO);
    show(&output, &created, false);
    show(&output, &changed, false);
    show(&output, &deleted, false);
    output_finish(&output, "22:13:20.123  PUT     /a  revision 5, version 1\n"
                           "              + x\n"
                           "              + y\n"
                           "22:13:20.123  PUT     /a  revision 6, version 2, lease 1f\n"
                           "                x\n"
                           "              - y\n"
                           "              + z\n"
                           "22:13:20.123  DELETE  /a  revision 9\n");
}

static void colours_are_used_if_they_are_wanted(void **state)
{
    struct output output;
    vigil_kv before = kv_of("/a", "1", 1), after = kv_of("/a", "2", 2);
    vigil_event changed = {.type = VIGIL_PUT, .kv = &after, .prev_kv = &before};
    (void)state;
    output_init(&output, CTL_SIMPLE, DECODE_AUTO);
    output.ctl.globals.colour = 1;
    show(&output, &changed, false);
    output_finish(&output, "22:13:20.123  \033[33mPUT   \033[0m  /a  revision 6, version 2\n"
                           "              \033[31m- 1\033[0m\n"
                           "              \033[32m+ 2\033[0m\n");
}

static void keys_and_values_do_not_control_a_terminal(void **state)
{
    struct output output;
    vigil_kv hostile = kv_of("/\033]0;x\007", "\033[2J\r", 1);
    vigil_event created = {.type = VIGIL_PUT, .kv = &hostile};
    (void)state;
    output_init(&output, CTL_SIMPLE, DECODE_RAW);
    show(&output, &created, false);
    output_finish(&output, "22:13:20.123  PUT     /\\x1b]0;x\\x07  revision 5, version 1\n"
                           "              + \\x1b[2J\\x0d\n");
}

static void the_past_has_the_times_of_its_objects(void **state)
{
    static const char object[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"creationTimestamp\":"
        "\"2026-01-01T00:00:00Z\",\"managedFields\":[{\"time\":\"2026-02-01T00:00:00Z\"},"
        "{\"time\":\"2026-01-15T00:00:00Z\"}]}}";
    struct output output;
    vigil_kv kv = kv_of("/a", object, 2), plain = kv_of("/b", "1", 3);
    vigil_event put = {.type = VIGIL_PUT, .kv = &kv, .prev_kv = &kv};
    vigil_event other = {.type = VIGIL_PUT, .kv = &plain};
    (void)state;
    output_init(&output, CTL_SIMPLE, DECODE_AUTO);
    show(&output, &put, true);
    show(&output, &other, true);
    output_finish(&output, "2026-02-01T00:00:00Z  PUT     /a  revision 6, version 2\n"
                           "                      (the same value)\n"
                           "-                     PUT     /b  revision 7, version 3\n"
                           "                        1\n");
}

static void lines_of_json_are_readable(void **state)
{
    struct output output;
    vigil_kv before = kv_of("/a", "\xff", 1), after = kv_of("/a", "{\"x\":1}", 2);
    vigil_kv gone = {.key = vigil_text("/a"), .mod_revision = 9};
    vigil_event changed = {.type = VIGIL_PUT, .kv = &after, .prev_kv = &before};
    vigil_event deleted = {.type = VIGIL_DELETE, .kv = &gone};
    (void)state;
    output_init(&output, CTL_JSONL, DECODE_JSON);
    show(&output, &changed, false);
    show(&output, &deleted, true);
    output_finish(
        &output,
        "{\"time\":\"2023-11-14T22:13:20.123Z\",\"type\":\"PUT\",\"key\":\"/"
        "a\",\"value\":{\"x\":1},"
        "\"create_revision\":5,\"mod_revision\":6,\"version\":2,\"prev_valueBase64\":\"/w==\"}\n"
        "{\"type\":\"DELETE\",\"key\":\"/a\",\"mod_revision\":9}\n");
}

static void long_values_are_cut(void **state)
{
    struct output output;
    AUTO(buf_fini) struct buf value = {0};
    (void)state;
    for (unsigned i = 0; i < VALUE_VIEW_LINES_DEFAULT + 40; i++)
        assert_int_equal(buf_append_text(&value, "line\n"), ST_OK);
    vigil_kv kv = {.key = vigil_text("/a"), .version = 1, .mod_revision = 1};
    kv.value = vigil_bytes_of(value.ptr, value.len);
    vigil_event created = {.type = VIGIL_PUT, .kv = &kv};
    output_init(&output, CTL_SIMPLE, DECODE_AUTO);
    show(&output, &created, false);
    fflush(output.ctl.out);
    assert_non_null(strstr(output.text, "… 40 more lines\n"));
    size_t lines = 0;
    for (const char *at = output.text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, VALUE_VIEW_LINES_DEFAULT + 2);
    char *copy = strdup(output.text);
    output_finish(&output, copy);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_have_a_time_and_a_difference),
        cmocka_unit_test(colours_are_used_if_they_are_wanted),
        cmocka_unit_test(keys_and_values_do_not_control_a_terminal),
        cmocka_unit_test(the_past_has_the_times_of_its_objects),
        cmocka_unit_test(lines_of_json_are_readable),
        cmocka_unit_test(long_values_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
