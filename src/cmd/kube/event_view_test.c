#include "cmd/kube/event_view.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WALL_S INT64_C(1700000000) /* 2023-11-14T22:13:20Z */

struct fixture {
    struct event_view view;
    char *text;
    size_t size, seen;
    FILE *to;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){0};
    setenv("TZ", "UTC", 1);
    f->to = open_memstream(&f->text, &f->size);
    assert_non_null(f->to);
    event_view_init(&f->view, f->to);
}

static void end(struct fixture *f)
{
    event_view_fini(&f->view);
    assert_int_equal(fclose(f->to), 0);
    free(f->text);
}

/* What was written since the last time. */
static const char *written(struct fixture *f)
{
    assert_int_equal(fflush(f->to), 0);
    const char *text = f->text + f->seen;
    f->seen = f->size;
    return text;
}

static const char *show(struct fixture *f, int type, const char *json)
{
    vigil_kube_object *object;
    assert_int_equal(vigil_kube_object_new(vigil_text(json), &object), VIGIL_OK);
    vigil_kube_event event = {
        .type = type, .object = object, .version = vigil_kube_object_version(object)};
    event_view_show(&f->view, &event, WALL_S * NS_PER_S + 512 * NS_PER_MS);
    vigil_kube_object_unref(object);
    return written(f);
}

static void a_change_is_shown_with_its_difference(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    assert_string_equal(
        show(&f, VIGIL_KUBE_ADDED,
             "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"resourceVersion\":\"7\","
             "\"creationTimestamp\":\"2023-11-14T22:13:17Z\"},\"spec\":{\"replicas\":1}}"),
        "22:13:20.512  ADDED     default/web  version 7, changed 3 s ago\n");
    assert_string_equal(
        show(&f, VIGIL_KUBE_MODIFIED,
             "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"resourceVersion\":\"8\","
             "\"creationTimestamp\":\"2023-11-14T22:13:17Z\",\"managedFields\":[{\"time\":"
             "\"2023-11-14T22:13:20Z\"}]},\"spec\":{\"replicas\":2,\"x\":\"\\u001b[2J\"}}"),
        "22:13:20.512  MODIFIED  default/web  version 8, changed <1 s ago\n"
        "               ~ spec.replicas: 1 > 2\n"
        "               + spec.x: \"\\u001b[2J\"\n");
    assert_int_equal(indexer_count(&f.view.last), 1);
    show(&f, VIGIL_KUBE_DELETED,
         "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"resourceVersion\":\"9\"}}");
    assert_int_equal(indexer_count(&f.view.last), 0);
    end(&f);
}

static void other_events_are_one_line(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    vigil_kube_event bookmark = {
        .type = VIGIL_KUBE_BOOKMARK, .version = vigil_text("12"), .initial_end = 1};
    event_view_show(&f.view, &bookmark, WALL_S * NS_PER_S);
    assert_string_equal(written(&f), "22:13:20.000  BOOKMARK  version 12, the state is complete\n");
    vigil_kube_status status = {.code = 410, .reason = "Expired", .message = "too old\033[2J"};
    vigil_kube_event error = {.type = VIGIL_KUBE_ERROR, .status = &status};
    event_view_show(&f.view, &error, WALL_S * NS_PER_S);
    assert_string_equal(written(&f), "22:13:20.000  ERROR     410 Expired: too old?[2J\n");
    vigil_kube_event ended = {.type = VIGIL_KUBE_ENDED, .reason = "the server ended it"};
    event_view_show(&f.view, &ended, WALL_S * NS_PER_S);
    assert_string_equal(written(&f), "22:13:20.000  ENDED     the server ended it\n");
    end(&f);
}

static void scripts_get_json(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.view.json = true;
    assert_string_equal(show(&f, VIGIL_KUBE_ADDED, "{\"metadata\":{\"name\":\"a\"}}"),
                        "{\"timeMs\":1700000000512,\"type\":\"ADDED\",\"object\":{\"metadata\":"
                        "{\"name\":\"a\"}}}\n");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_shown_with_its_difference),
        cmocka_unit_test(other_events_are_one_line),
        cmocka_unit_test(scripts_get_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
