/* An informer of objects in Kubernetes' protobuf. */
#include "kubeclient/informer/informer.h"

#include "kubeclient/call/kube_server_sim_test.h"
#include "kubeclient/data/samples_test.h"

/* n/c of version 14 with the owner o1; version 40. */
#define LAST_PAGE                                                                    \
    "k8s\000\012\015\012\002v1\022\007PodList\022\032\012\004\022\00240\022\022\012" \
    "\020\012\001c\032\001n2\00214j\004\042\002o1"

static struct kube_world world;
static vigil_kube_informer *informer;

static void send_frame(struct sim_reply *reply, struct slice frame)
{
    uint8_t head[4] = {0, 0, (uint8_t)(frame.len >> 8), (uint8_t)frame.len};
    sim_reply_write(reply, slice_of(head, sizeof(head)));
    sim_reply_write(reply, frame);
}

static void answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    static const char type[] = "application/vnd.kubernetes.protobuf";
    (void)ctx;
    assert_non_null(strstr(request->accept, type));
    if (strstr(request->target, "watch=true")) {
        sim_reply_begin(reply, 200, "application/vnd.kubernetes.protobuf;stream=watch");
        if (strstr(request->target, "sendInitialEvents=true")) {
            send_frame(reply, SLICE_LITERAL(SAMPLE_ADDED));
            send_frame(reply, SLICE_LITERAL(SAMPLE_BOOKMARK));
        }
    } else if (strstr(request->target, "continue=tok")) {
        sim_reply_whole(reply, 200, type, SLICE_LITERAL(LAST_PAGE));
    } else {
        sim_reply_whole(reply, 200, type, SLICE_LITERAL(SAMPLE_LIST));
    }
}

static void begin(bool no_streaming)
{
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    options.protobuf = 1;
    options.no_streaming = no_streaming;
    kube_world_init(&world, SIM_HTTP1, NULL);
    kube_server_route(&world.server, "GET", "/api/v1/pods", answer, NULL);
    assert_true(kube_world_start(&world));
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, vigil_kube_informer_has_synced(informer));
    assert_int_equal(vigil_kube_informer_has_synced(informer), 1);
}

static void end(void)
{
    vigil_kube_informer_free(informer);
    kube_world_fini(&world);
}

static void expect_object(const char *key, const char *version)
{
    vigil_kube_object *object = vigil_kube_informer_get(informer, vigil_text(key));
    assert_non_null(object);
    assert_true(slice_equal(object_version(object), slice_from_text(version)));
    assert_true(vigil_kube_object_protobuf(object).size > 0);
    vigil_bytes kind = vigil_kube_object_kind(object);
    assert_true(slice_equal(slice_of(kind.data, kind.size), SLICE_LITERAL("Pod")));
    vigil_kube_object_unref(object);
}

static size_t found(const char *index, const char *value)
{
    vigil_kube_objects objects;
    assert_int_equal(vigil_kube_informer_find(informer, index, vigil_text(value), &objects),
                     VIGIL_OK);
    size_t count = objects.count;
    vigil_kube_objects_free(&objects);
    return count;
}

static void objects_are_streamed(void **state)
{
    (void)state;
    begin(false);
    expect_object("n/a", "12");
    assert_int_equal(found("namespace", "n"), 1);
    vigil_kube_informer_stats stats;
    vigil_kube_informer_get_stats(informer, &stats, sizeof(stats));
    assert_string_equal(stats.version, "99");
    assert_int_equal(stats.failures, 0);
    end();
}

static void objects_are_listed_and_found_by_owner(void **state)
{
    (void)state;
    begin(true);
    expect_object("n/a", "12");
    expect_object("n/b", "13");
    expect_object("n/c", "14");
    assert_int_equal(found("namespace", "n"), 3);
    assert_int_equal(found("owner", "o1"), 1);
    assert_int_equal(found("owner", ""), 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_streamed),
        cmocka_unit_test(objects_are_listed_and_found_by_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
